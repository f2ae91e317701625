//! What samples come to.

use super::{Sample, Soaked, figures};
use crate::peers;

fn value(name: &str, what: &str, of: impl Fn(f64) -> f64) -> (f64, Option<f64>) {
    let sample = |at: u32| {
        let it = of(f64::from(at));
        Sample { at_s: f64::from(at), per_s: [it; 4], bytes: [it; 4], resident: it }
    };
    let kind = peers::known(name).unwrap();
    let soaked = Soaked { kind, samples: (0..12).map(sample).collect(), live: [2.0; 4] };
    let figures = figures(&soaked);
    let figure = figures.iter().find(|it| it.id == format!("store.soak.{name}.{what}")).unwrap();
    (figure.value, figure.goal)
}

#[test]
fn the_warm_up_says_nothing_about_growth() {
    let warm = |at: f64| if at < 2.0 { 1e6 } else { 10.0 };
    assert_eq!(value("holdfast", "queue.last_over_first", warm), (1.0, Some(0.9)));
    assert_eq!(value("holdfast", "large.bytes_growth", warm), (1.0, Some(1.2)));
    assert_eq!(value("lmdb", "memory_growth", warm), (1.0, None));
    assert_eq!(value("lmdb", "queue.over_live", warm), (5.0, None));
}

#[test]
fn what_grows_is_seen() {
    let grows = |at: f64| if at < 4.0 { 10.0 } else { 10.0 * at };
    assert_eq!(value("lmdb", "series.last_over_first", grows).0, 10.5);
    assert_eq!(value("lmdb", "series.bytes_growth", grows).0, 10.5);
}
