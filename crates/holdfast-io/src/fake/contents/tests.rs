//! Tests of one file through time.
