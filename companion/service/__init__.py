"""The companion as a service of this machine: installed, started at login, given its sockets."""
