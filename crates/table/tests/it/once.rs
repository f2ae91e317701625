//! A request is done once, however often it is asked.

use holdfast_table::{
    Answer, Kind, NUMBERS_AHEAD_MAX, Outcome, Range, Request, RespondError, Schema, Status, Tables,
    decode_answer, row,
};

use crate::basics::open;
use crate::support::{cut, machine, settle};

/// Counts: one more, and how many that are.
pub(crate) fn count() -> Request {
    Request::new().add("counters", row![0_u64], 1, 1).get("counters", row![0_u64])
}

pub(crate) fn made(tables: &Tables) {
    let counters = Schema::new(vec![Kind::U64, Kind::I64], 1, vec![]).expect("it is sound");
    let request = Request::new().make("counters", counters).insert("counters", row![0_u64, 0_i64]);
    assert!(ask(tables, 99, 1, 1, &request).expect("the machine is well").is_ok());
}

pub(crate) fn ask(
    tables: &Tables,
    client: u64,
    sequence: u64,
    oldest: u64,
    request: &Request,
) -> Result<Answer, RespondError> {
    let mut answer = Vec::new();
    tables.respond(client, sequence, oldest, &request.encode(), &mut answer)?;
    settle(tables.store());
    Ok(decode_answer(&answer).expect("it is an answer"))
}

pub(crate) fn counted(count: i64) -> Answer {
    Ok(vec![Outcome::Done, Outcome::Row(row![0_u64, count])])
}

#[test]
fn a_repeated_request_is_answered_the_same_and_not_done_again() {
    let files = machine(3);
    let tables = open(&files);
    made(&tables);
    for _ in 0..3 {
        assert_eq!(ask(&tables, 1, 1, 1, &count()).expect("well"), counted(1));
    }
    assert_eq!(ask(&tables, 1, 2, 1, &count()).expect("well"), counted(2));
    // Another client's numbers are its own.
    assert_eq!(ask(&tables, 2, 1, 1, &count()).expect("well"), counted(3));
    let tables = open(&cut(&files));
    assert_eq!(ask(&tables, 1, 2, 1, &count()).expect("well"), counted(2));
    assert_eq!(ask(&tables, 1, 1, 1, &count()).expect("well"), counted(1));
    assert_eq!(ask(&tables, 1, 3, 2, &count()).expect("well"), counted(4));
}

#[test]
fn a_refused_request_stays_refused_when_it_is_repeated() {
    let tables = open(&machine(3));
    made(&tables);
    let request = Request::new().insert("counters", row![5_u64, 1_i64]);
    let taken = Request::new().insert("counters", row![0_u64, 1_i64]);
    let refused = ask(&tables, 1, 1, 1, &taken).expect("well");
    assert_eq!(refused.as_ref().map_err(|refusal| refusal.status), Err(Status::RowExists));
    let gone = Request::new().delete("counters", row![0_u64]);
    assert!(ask(&tables, 1, 2, 1, &gone).expect("well").is_ok());
    assert_eq!(ask(&tables, 1, 1, 1, &taken).expect("well"), refused);
    assert!(ask(&tables, 1, 3, 1, &request).expect("well").is_ok());
}

#[test]
fn numbers_that_cannot_be_under_way_are_refused() {
    let tables = open(&machine(3));
    made(&tables);
    let is_refused = |sequence, oldest| {
        matches!(ask(&tables, 1, sequence, oldest, &count()), Err(RespondError::Number))
    };
    assert!(is_refused(1, 2) && is_refused(NUMBERS_AHEAD_MAX + 1, 1));
    for sequence in 1..=NUMBERS_AHEAD_MAX + 9 {
        assert!(!is_refused(sequence, sequence), "{sequence}");
    }
    // It had its answer long ago.
    assert!(is_refused(5, 5));
    let all = Request::new().scan("counters", Range::all());
    let counted = row![0_u64, (NUMBERS_AHEAD_MAX + 9).cast_signed()];
    let rows = Outcome::Rows { rows: vec![counted], has_more: false };
    assert_eq!(ask(&tables, 1, 1, 1, &all).expect("well"), Ok(vec![rows]));
}

#[test]
fn several_under_way_may_come_in_any_order() {
    let tables = open(&machine(3));
    made(&tables);
    for sequence in (1..=NUMBERS_AHEAD_MAX).rev() {
        let wanted = counted((NUMBERS_AHEAD_MAX + 1 - sequence).cast_signed());
        assert_eq!(ask(&tables, 1, sequence, 1, &count()).expect("well"), wanted);
        assert_eq!(ask(&tables, 1, sequence, 1, &count()).expect("well"), wanted);
    }
}

#[test]
fn a_client_keeps_no_more_answers_than_it_may_have_under_way() {
    let tables = open(&machine(3));
    made(&tables);
    for sequence in 1..=NUMBERS_AHEAD_MAX + 300 {
        assert!(ask(&tables, 1, sequence, sequence, &count()).is_ok());
    }
    let store = tables.store();
    let answers = store.tree("answers").expect("it is there");
    let mut reading = store.begin();
    let kept = reading.scan::<&[u8]>(&answers, .., holdfast_store::Direction::Up).count();
    assert_eq!(kept as u64, NUMBERS_AHEAD_MAX + 1);
}
