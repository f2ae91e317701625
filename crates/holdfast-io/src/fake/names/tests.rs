//! Tests of names through time.
