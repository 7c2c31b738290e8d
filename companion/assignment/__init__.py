"""Review requests and assigned issues of GitHub, put on a board by a schedule. Off unless set up."""
