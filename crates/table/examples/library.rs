//! A library: books, found by number and by author, and who has them.
//! `library DIRECTORY` and `buy BOOK AUTHOR`, `register READER`, `lend BOOK READER` or `by AUTHOR`.
//!
//! Promise: a book is lent to one reader at a time, and readers have as many as is written of them,
//! after any crash.
//! Never: reads before it writes: what a request counts on is in the request.

use holdfast_store::{Config, Durability, Store};
use holdfast_table::{
    Answer, Condition, Index, Kind, Outcome, Range, Request, Row, Schema, Status, Tables,
    decode_answer, row,
};
use std::io::{Write, stdout};
use std::{error::Error, path::Path};

type Outcomes = Result<Answer, Box<dyn Error>>;

/// Who has a book that is on its shelf.
const NOBODY: &str = "";

pub(crate) struct Library {
    tables: Tables,
    /// Whoever asks numbers what he asks; a program that is alone does so from one on.
    client: u64,
    sequence: u64,
}

impl Library {
    /// `client` is a number that nobody had before.
    pub(crate) fn open(directory: &Path, client: u64) -> Result<Library, Box<dyn Error>> {
        let (store, _) = Store::open(directory, &Config::default())?;
        let tables = Tables::open(store, Durability::Disk)?;
        let mut library = Library { tables, client, sequence: 0 };
        library.make()?;
        Ok(library)
    }

    fn ask(&mut self, request: &Request) -> Outcomes {
        self.sequence += 1;
        let (number, mut answer) = (self.sequence, Vec::new());
        self.tables.respond(self.client, number, number, &request.encode(), &mut answer)?;
        Ok(decode_answer(&answer)?)
    }

    /// Makes the tables, unless they are there.
    fn make(&mut self) -> Result<(), Box<dyn Error>> {
        let by_author = Index { fields: vec![1], is_unique: false };
        // Number, author, reader; and reader, how many books.
        let books = Schema::new(vec![Kind::U64, Kind::Bytes, Kind::Bytes], 1, vec![by_author]);
        let readers = Schema::new(vec![Kind::Bytes, Kind::U64], 1, vec![]);
        let (books, readers) = (books.ok_or("no table")?, readers.ok_or("no table")?);
        let request = Request::new().make("books", books).make("readers", readers);
        match self.ask(&request)? {
            Err(refusal) if refusal.status != Status::TableExists => Err(refusal.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn buy(&mut self, book: u64, author: &str) -> Outcomes {
        self.ask(&Request::new().insert("books", row![book, author, NOBODY]))
    }

    pub(crate) fn register(&mut self, reader: &str) -> Outcomes {
        self.ask(&Request::new().insert("readers", row![reader, 0_u64]))
    }

    /// Lends a book that is on its shelf. The answer has what the reader has then.
    pub(crate) fn lend(&mut self, book: u64, reader: &str) -> Outcomes {
        let on_shelf = Condition::Has(vec![(2, NOBODY.into())]);
        let request = Request::new()
            .expect("books", row![book], on_shelf)
            .set("books", row![book], 2, reader)
            .add("readers", row![reader], 1, 1)
            .get("readers", row![reader]);
        self.ask(&request)
    }

    pub(crate) fn by(&mut self, author: &str) -> Result<Vec<Row>, Box<dyn Error>> {
        let request = Request::new().scan_by("books", 0, Range::of(row![author]));
        match self.ask(&request)??.pop() {
            Some(Outcome::Rows { rows, .. }) => Ok(rows),
            _ => Err("no rows".into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let client = std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64;
    let open = |directory: &str| Library::open(Path::new(directory), client);
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [directory, "buy", book, author] => {
            writeln!(stdout(), "{:?}", open(directory)?.buy(book.parse()?, author)?)?;
        }
        [directory, "register", reader] => {
            writeln!(stdout(), "{:?}", open(directory)?.register(reader)?)?;
        }
        [directory, "lend", book, reader] => {
            writeln!(stdout(), "{:?}", open(directory)?.lend(book.parse()?, reader)?)?;
        }
        [directory, "by", author] => writeln!(stdout(), "{:?}", open(directory)?.by(author)?)?,
        _ => return Err("see above".into()),
    }
    Ok(())
}
