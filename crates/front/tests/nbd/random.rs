//! Random numbers from a seed, and the command that repeats a failure.

/// A stream of numbers from a seed (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Runs `body` for seeds 1..=`count`, or for HOLDFAST_SEED alone.
#[expect(clippy::print_stdout, reason = "the seed is for whoever reads the failure")]
pub(crate) fn for_seeds(test: &str, count: u64, mut body: impl FnMut(&mut Random)) {
    let given = std::env::var("HOLDFAST_SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in given.map_or(1..=count, |seed| seed..=seed) {
        println!("to repeat: HOLDFAST_SEED={seed} cargo test -p holdfast-front --test nbd {test}");
        body(&mut Random::seeded(seed));
    }
}
