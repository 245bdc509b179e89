"""`chronolet timeline`: the containers of hours on one screen."""
