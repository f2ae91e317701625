//! A conversation without a socket.

use holdfast_front::nbd::{Exchange, Export, Over, Replies, Step};

use crate::answers::{self, Answer, GREETING, OptionAnswer};
use crate::messages;

pub(crate) struct Pure<'e> {
    exchange: Exchange<'e>,
    /// Received and not taken apart.
    output: Vec<u8>,
    pub(crate) over: Option<Over>,
}

impl<'e> Pure<'e> {
    /// A client that has heard the greeting.
    pub(crate) fn greeted(exports: &'e [Export<'e>]) -> Self {
        let exchange = Exchange::new(exports, "a test".into());
        let mut pure = Self { exchange, output: Vec::new(), over: None };
        pure.say(&[]);
        assert_eq!(pure.take_bytes(GREETING.len()), GREETING);
        pure
    }

    /// A client that has sent its flags.
    pub(crate) fn at_options(exports: &'e [Export<'e>]) -> Self {
        let mut pure = Self::greeted(exports);
        pure.say(&messages::hello());
        pure
    }

    /// A client that has chosen `disk`.
    pub(crate) fn at_requests(exports: &'e [Export<'e>], structured: bool) -> Self {
        let mut pure = Self::greeted(exports);
        pure.say(&messages::opening(b"disk", structured));
        while pure.take_option().is_some() {}
        pure
    }

    /// Whole messages.
    pub(crate) fn say(&mut self, input: &[u8]) {
        let mut rest = input;
        let mut replies = Replies::default();
        while self.over.is_none() {
            match self.exchange.step(rest, &mut replies) {
                Step::Used(bytes) => rest = &rest[bytes..],
                Step::Needs(_) => break,
                Step::Flush { used, cookie } => {
                    rest = &rest[used..];
                    let flushed = self.exchange.blocks().unwrap().flush();
                    self.exchange.flushed(cookie, flushed.as_ref().copied(), &mut replies);
                }
                Step::Secure { used } => rest = &rest[used..],
                Step::Over(over) => self.over = Some(over),
            }
            self.output.extend_from_slice(replies.unsent());
            replies.sent(replies.unsent().len());
        }
        assert!(rest.is_empty() || self.over.is_some(), "{} bytes were not heard", rest.len());
    }

    pub(crate) fn take_bytes(&mut self, count: usize) -> Vec<u8> {
        self.output.drain(..count).collect()
    }

    pub(crate) fn take_option(&mut self) -> Option<OptionAnswer> {
        let mut rest = self.output.as_slice();
        let answer = answers::take_option(&mut rest);
        self.output = rest.to_vec();
        answer
    }

    /// The one answer to an option.
    pub(crate) fn option(&mut self, option: u32, data: &[u8]) -> OptionAnswer {
        let mut all = self.options(option, data);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// All answers to an option.
    pub(crate) fn options(&mut self, option: u32, data: &[u8]) -> Vec<OptionAnswer> {
        self.say(&messages::option(option, data));
        let all: Vec<_> = std::iter::from_fn(|| self.take_option()).collect();
        assert!(all.iter().all(|answer| answer.option == option));
        all
    }

    /// All answers so far, where replies have structure.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        answers::take_all(&std::mem::take(&mut self.output)).expect("whole answers")
    }

    /// All bytes so far.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }
}
