"""One registry drives installing, removing, doctor, help and these tests."""
