"""Headers: short texts by name that middleware gives a job."""
