//! Clocks that step in both directions, before, at and after a power cut.

use super::{Moments, UNNOTED_NS};

const HISTORIES: u64 = 20_000;
const SECOND: i64 = 1_000_000_000;

/// Numbers from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 1).cast_signed() % end
    }
}

/// One power cut, as the clocks of then and of now tell it.
#[derive(Debug)]
struct History {
    moments: Moments,
    /// The times of what the volume touched before it.
    own: Vec<i64>,
    /// The times of what others touched after it.
    others: Vec<i64>,
}

impl History {
    /// `steps` says whether the clock does.
    fn draw(draw: &mut Draw, steps: bool) -> History {
        let (mut time, mut ahead, mut noted_ns) = (100_000 * SECOND, 0, 0);
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let step = |draw: &mut Draw, ahead: &mut i64| {
            if steps && draw.below(3) == 0 {
                *ahead = (draw.below(2001) - 1000) * SECOND / [1, 10, 1000][draw.below(3) as usize];
            }
        };
        for _ in 0..draw.below(6) + 1 {
            step(draw, &mut ahead);
            for _ in 0..draw.below(4) + 1 {
                time += draw.below(5 * SECOND);
                own.push(time + ahead);
                // The newest may not be noted any more.
                noted_ns = noted_ns.max(time + ahead - draw.below(UNNOTED_NS));
            }
            time += UNNOTED_NS;
            noted_ns = noted_ns.max(time + ahead);
        }
        time += draw.below(UNNOTED_NS);
        own.push(time + ahead);
        time += UNNOTED_NS + 2 * SECOND + draw.below(100 * SECOND);
        let began = time;
        step(draw, &mut ahead);
        for _ in 0..draw.below(3) {
            time += 1 + draw.below(20 * SECOND);
            others.push(time + ahead);
        }
        time += 1 + draw.below(20 * SECOND);
        step(draw, &mut ahead);
        let began_ns = (began + ahead) / SECOND * SECOND;
        let moments = Moments { began_ns, noted_ns, now_ns: time + ahead };
        History { moments, own, others }
    }

    /// How many of these times would be told, by the rule of [`holdfast_volume::Unapplied`].
    fn told(&self, times: &[i64], since_ns: Option<i64>) -> usize {
        let is_ahead = self.own.iter().chain(&self.others).any(|it| *it > self.moments.now_ns);
        let since_ns = since_ns.filter(|_| !is_ahead);
        since_ns.map_or(0, |since_ns| times.iter().filter(|it| **it > since_ns).count())
    }
}

#[test]
fn whatever_the_clock_does_nothing_of_the_volumes_own_is_taken_for_others() {
    let (mut naive_lies, mut told) = (0, 0);
    for seed in 0..HISTORIES {
        let history = History::draw(&mut Draw(seed), true);
        let since_ns = history.moments.alone_since_ns();
        assert_eq!(history.told(&history.own, since_ns), 0, "seed {seed}: {history:?}");
        told += history.told(&history.others, since_ns);
        // The canary: the moment of the restart alone.
        naive_lies += history.told(&history.own, Some(history.moments.began_ns)).min(1);
    }
    assert!(naive_lies > 0 && told > 0, "{naive_lies} {told}");
}

#[test]
fn what_others_change_after_a_restart_is_told_where_the_clock_does_not_step() {
    for seed in 0..HISTORIES {
        let history = History::draw(&mut Draw(seed), false);
        let told = history.told(&history.others, history.moments.alone_since_ns());
        assert_eq!(told, history.others.len(), "seed {seed}: {history:?}");
    }
}
