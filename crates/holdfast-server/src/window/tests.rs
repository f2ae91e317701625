//! Whatever order numbers come in, each is appended once.
