//! Extents agree with a plain array, whatever is put over what.

use super::*;

const SIZE: usize = 64;

/// For every offset: the LSN its byte stands at, `u64::MAX` for a zero, or nothing.
type Model = [Option<u64>; SIZE];

fn model_of(extents: &Extents) -> Model {
    let mut model = [None; SIZE];
    for piece in extents.iter() {
        for step in 0..piece.bytes {
            let lsn = if piece.source != Source::Log { u64::MAX } else { piece.at.0 + step };
            model[(piece.offset + step) as usize] = Some(lsn);
        }
    }
    model
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn the_newest_piece_wins_at_every_offset() {
    for seed in 0..300 {
        let mut state = seed;
        let mut extents = Extents::default();
        let mut model: Model = [None; SIZE];
        for step in 1..40u64 {
            let offset = next(&mut state) % SIZE as u64;
            let bytes = next(&mut state) % (SIZE as u64 - offset + 1);
            let zero = next(&mut state).is_multiple_of(5);
            let at = step * 1000;
            let source = if zero { Source::Zeros } else { Source::Log };
            extents.insert(Piece { offset, bytes, at: Lsn(at), source });
            for index in 0..bytes {
                model[(offset + index) as usize] = Some(if zero { u64::MAX } else { at + index });
            }
            if next(&mut state).is_multiple_of(7) {
                let size = next(&mut state) % SIZE as u64;
                extents.cut(size);
                model[size as usize..].fill(None);
            }
            assert_eq!(model_of(&extents), model, "seed {seed}, step {step}");
            let inside = extents.within(offset, bytes).map(|piece| piece.bytes).sum::<u64>();
            let known = model[offset as usize..(offset + bytes) as usize].iter().flatten().count();
            assert_eq!(inside, known as u64, "seed {seed}, step {step}");
            assert_eq!(extents.covers(offset, bytes), inside == bytes, "seed {seed}");
        }
    }
}

#[test]
fn pieces_below_an_applied_lsn_are_forgotten() {
    let mut extents = Extents::default();
    extents.insert(Piece { offset: 0, bytes: 8, at: Lsn(100), source: Source::Log });
    extents.insert(Piece { offset: 4, bytes: 8, at: Lsn(200), source: Source::Log });
    extents.drop_below(Lsn(150));
    assert!(!extents.covers(0, 4) && extents.covers(4, 8));
    extents.drop_below(Lsn(300));
    assert!(extents.is_empty());
}

/// Frames of which some are applied: to forget those where they wrote is to forget them all.
#[test]
fn what_is_applied_is_found_where_it_was_written() {
    for seed in 0..300 {
        let mut state = seed;
        let (mut applied, mut overlay) = (Extents::default(), Extents::default());
        let upto = Lsn(1000 * (next(&mut state) % 40));
        for step in 1..40u64 {
            let offset = next(&mut state) % SIZE as u64;
            let bytes = next(&mut state) % (SIZE as u64 - offset + 1);
            let piece = Piece { offset, bytes, at: Lsn(step * 1000), source: Source::Log };
            overlay.insert(piece);
            if piece.at < upto {
                applied.insert(piece);
            }
            if next(&mut state).is_multiple_of(9) {
                overlay.cut(offset);
                let _ = (piece.at < upto).then(|| applied.cut(offset));
            }
        }
        let mut expected = overlay.clone();
        expected.drop_below(upto);
        let pieces: Vec<Piece> = applied.iter().collect();
        pieces.chunks(3).for_each(|pieces| overlay.drop_within(pieces, upto));
        assert_eq!(overlay, expected, "seed {seed}");
    }
}
