//! Many runs, one value.
//!
//! Promise: a median resists what disturbs fewer than half of the runs; a percentile is a value
//! that occurred.
//! Never: averages.

/// The middle value; the mean of the two middle values of an even count; NaN of nothing.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The value below which `percent` of a sorted list lies; 0 of nothing.
#[must_use]
pub fn percentile(sorted: &[u64], percent: u64) -> u64 {
    let rank = (sorted.len() as u64 * percent).div_ceil(100).max(1) - 1;
    usize::try_from(rank).ok().and_then(|rank| sorted.get(rank)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
