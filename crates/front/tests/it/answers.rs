//! Answers without a kernel: what a request gets that is hard to provoke on a mount.

use std::sync::atomic::Ordering;

use holdfast_front::fuse::parse::{Init, Open, Operation, Request};
use holdfast_front::fuse::reply::Reply;
use holdfast_front::fuse::{Cache, Server};

use crate::memory_tree::MemoryTree;

const ENOSYS: i32 = 38;

struct Asker {
    tree: MemoryTree,
}

impl Asker {
    fn new(sync_is_needed: bool) -> Self {
        Self { tree: MemoryTree::new(sync_is_needed) }
    }

    fn ask_as(&self, resent: bool, node: u64, operation: Operation<'_>) -> Reply {
        let request = Request { unique: 2, resent, node, uid: 1, gid: 1, pid: 0, operation };
        let server = Server::new(&self.tree, Cache::Direct, || 0);
        server.serve(&request, &mut [0; 4096])
    }

    fn ask(&self, operation: Operation<'_>) -> Reply {
        self.ask_as(false, 1, operation)
    }

    /// Findings that the tree counts as remembered.
    fn found(&self) -> u64 {
        self.tree.found.load(Ordering::Relaxed)
    }

    /// Asks twice, the second time marked as sent again, as after a death between the two.
    fn ask_twice(&self, operation: Operation<'_>) -> (Reply, Reply) {
        (self.ask_as(false, 1, operation), self.ask_as(true, 1, operation))
    }
}

fn make_file(name: &[u8]) -> Operation<'_> {
    Operation::MakeNode { name, mode: 0o100_644, umask: 0, rdev: 0 }
}

fn node_of(reply: Reply) -> u64 {
    match reply {
        Reply::Entry(entry) | Reply::Created(entry, _) => entry.node,
        other => panic!("{other:?} names no node"),
    }
}

const EXCLUSIVE: Open = Open { exclusive: true, truncate: false, kill_privileges: false };

#[test]
fn a_repeated_making_of_a_name_gets_the_answer_of_the_first() {
    let asker = Asker::new(false);
    let operations = [
        make_file(b"file"),
        Operation::MakeDirectory { name: b"directory", mode: 0o755, umask: 0 },
        Operation::Symlink { name: b"symlink", target: b"file" },
        Operation::Create { name: b"created", mode: 0o100_644, umask: 0, open: EXCLUSIVE },
    ];
    for operation in operations {
        let (first, second) = asker.ask_twice(operation);
        assert_eq!(node_of(first), node_of(second), "{operation:?}");
    }
    let node = node_of(asker.ask(Operation::Lookup { name: b"file" }));
    let (first, second) = asker.ask_twice(Operation::Link { node, name: b"link" });
    assert_eq!((node_of(first), node_of(second)), (node, node));
}

#[test]
fn a_repeated_taking_of_a_name_gets_the_answer_of_the_first() {
    let asker = Asker::new(false);
    asker.ask(make_file(b"a"));
    asker.ask(make_file(b"b"));
    asker.ask(Operation::MakeDirectory { name: b"d", mode: 0o755, umask: 0 });
    let operations = [
        Operation::Rename { name: b"a", new_parent: 1, new_name: b"b", flags: 0 },
        Operation::Unlink { name: b"b" },
        Operation::RemoveDirectory { name: b"d" },
    ];
    for operation in operations {
        assert_eq!(asker.ask_twice(operation), (Reply::Done, Reply::Done), "{operation:?}");
    }
}

#[test]
fn what_is_not_repeated_keeps_its_error() {
    let asker = Asker::new(false);
    asker.ask(make_file(b"a"));
    assert_eq!(asker.ask(make_file(b"a")), Reply::Failed(17));
    assert_eq!(asker.ask(Operation::Unlink { name: b"b" }), Reply::Failed(2));
}

#[test]
fn a_link_to_another_file_is_an_error_even_when_repeated() {
    let asker = Asker::new(false);
    let node = node_of(asker.ask(make_file(b"a")));
    asker.ask(make_file(b"b"));
    let reply = asker.ask_as(true, 1, Operation::Link { node, name: b"b" });
    assert_eq!(reply, Reply::Failed(17));
    assert_eq!(asker.found(), 2, "what the kernel is not told of it never forgets");
}

#[test]
fn sync_is_declined_for_good_where_it_has_no_work() {
    assert_eq!(Asker::new(false).ask(Operation::Sync), Reply::Failed(ENOSYS));
    assert_eq!(Asker::new(true).ask(Operation::Sync), Reply::Done);
    assert_eq!(Asker::new(true).ask(Operation::SyncFileSystem), Reply::Done);
}

#[test]
fn unknown_operations_and_interrupts_are_not_asked_again() {
    let asker = Asker::new(false);
    assert_eq!(asker.ask(Operation::Unknown { opcode: 52 }), Reply::Failed(ENOSYS));
    assert_eq!(asker.ask(Operation::Interrupt), Reply::Failed(ENOSYS));
}

#[test]
fn an_unknown_node_is_an_error_and_not_a_panic() {
    let asker = Asker::new(true);
    let lost = asker.ask_as(false, 4711, Operation::Read { offset: 0, bytes: 10 });
    assert_eq!(lost, Reply::Failed(116));
    assert_eq!(asker.ask_as(false, 4711, Operation::GetAttributes), Reply::Failed(116));
}

#[test]
fn a_missing_name_may_be_remembered_as_missing() {
    let Reply::Entry(entry) = Asker::new(true).ask(Operation::Lookup { name: b"x" }) else {
        panic!("an error is asked again every time");
    };
    assert_eq!(entry.node, 0);
    assert!(!entry.remember_for.is_zero());
}

#[test]
fn requests_are_served_by_a_process_that_saw_no_init() {
    let asker = Asker::new(true);
    node_of(asker.ask(make_file(b"a")));
    let offer = Init { major: 7, minor: 45, max_readahead_bytes: 4096, features: u64::MAX };
    assert!(matches!(asker.ask(Operation::Init(offer)), Reply::Started(_)));
}

#[test]
fn whiteouts_and_mixed_rename_flags_are_refused() {
    let asker = Asker::new(true);
    for flags in [3, 4, 5] {
        let rename = Operation::Rename { name: b"a", new_parent: 1, new_name: b"b", flags };
        assert_eq!(asker.ask(rename), Reply::Failed(22));
    }
}

#[test]
fn ways_to_allocate_that_are_not_known_are_refused_without_never_ask_again() {
    let allocate = Operation::Allocate { offset: 0, bytes: 1, mode: 0x20 };
    assert_eq!(Asker::new(true).ask(allocate), Reply::Failed(95));
}

/// Whoever is not root takes the set-id bits away by whatever changes the file.
#[test]
fn to_reserve_room_or_to_punch_holes_drops_privileges() {
    for mode in [0, 1, 3, 16] {
        let asker = Asker::new(true);
        let operation = Operation::MakeNode { name: b"a", mode: 0o106_755, umask: 0, rdev: 0 };
        let node = node_of(asker.ask(operation));
        let allocate = Operation::Allocate { offset: 0, bytes: 10, mode };
        assert_eq!(asker.ask_as(false, node, allocate), Reply::Done);
        let told = asker.ask_as(false, node, Operation::GetAttributes);
        let Reply::Attributes(attributes, _) = told else { panic!("{told:?}") };
        assert_eq!(attributes.mode, 0o100_755, "by way {mode}");
    }
}

#[test]
fn data_and_holes_are_found_and_other_seeks_are_refused() {
    let asker = Asker::new(true);
    let node = node_of(asker.ask(make_file(b"a")));
    let reserve = Operation::Allocate { offset: 0, bytes: 10, mode: 0 };
    assert_eq!(asker.ask_as(false, node, reserve), Reply::Done);
    let seek = |offset, whence| asker.ask_as(false, node, Operation::Seek { offset, whence });
    assert_eq!(seek(3, 3), Reply::Found { offset: 3 });
    assert_eq!(seek(3, 4), Reply::Found { offset: 10 });
    assert_eq!(seek(10, 3), Reply::Failed(6));
    assert_eq!(seek(3, 0), Reply::Failed(22));
}

/// Whoever has not seen INIT does not know whether an open truncates, or whether the kernel can do
/// without one.
#[test]
fn opens_are_declined_where_they_count_for_nothing_and_by_who_agreed_to_that_only() {
    let open =
        |truncate| Operation::Open(Open { exclusive: false, truncate, kill_privileges: false });
    let offer = Init { major: 7, minor: 45, max_readahead_bytes: 4096, features: u64::MAX };
    for (cache, counts_opens) in [
        (Cache::Direct, true),
        (Cache::Direct, false),
        (Cache::WriteThrough, true),
        (Cache::WriteThrough, false),
    ] {
        let tree = MemoryTree::new(true).that_says_of_opens(counts_opens);
        let server = Server::new(&tree, cache, || 0);
        let ask = |node, operation| {
            let request =
                Request { unique: 2, resent: false, node, uid: 1, gid: 1, pid: 0, operation };
            server.serve(&request, &mut [0; 4096])
        };
        let node = node_of(ask(1, make_file(b"file")));
        let create = |name| Operation::Create { name, mode: 0o100_644, umask: 0, open: EXCLUSIVE };
        let declined = Reply::Failed(ENOSYS);
        assert_ne!(ask(node, open(true)), declined);
        assert_ne!(ask(1, create(b"before")), declined);
        let Reply::Started(started) = ask(1, Operation::Init(offer)) else {
            panic!("a new kernel")
        };
        let declines = cache == Cache::WriteThrough && !counts_opens;
        assert_eq!(ask(node, open(false)) == declined, declines, "{cache:?} {counts_opens}");
        assert_eq!(ask(1, Operation::OpenDirectory) == declined, declines);
        assert_eq!(ask(1, create(b"after")) == declined, declines);
        let truncates = started.features & ATOMIC_O_TRUNC != 0;
        assert_eq!(truncates, !declines, "an open that is not told truncates nothing");
    }
}

const ATOMIC_O_TRUNC: u64 = 1 << 3;

/// Pages that one open fills and another goes past would be stale: all opens of a mount are alike,
/// whatever the configuration says by now.
#[test]
fn a_mount_keeps_pages_or_does_not_for_as_long_as_it_is_there() {
    let open = Operation::Open(Open { exclusive: false, truncate: false, kill_privileges: false });
    let offer = Init { major: 7, minor: 45, max_readahead_bytes: 4096, features: 0 };
    for began in [Cache::Direct, Cache::WriteThrough] {
        let tree = MemoryTree::new(true);
        let flags = |server: &Server<'_>| {
            let ask = |node, operation| {
                let request =
                    Request { unique: 2, resent: false, node, uid: 1, gid: 1, pid: 0, operation };
                server.serve(&request, &mut [0; 4096])
            };
            let node = node_of(ask(1, Operation::Lookup { name: b"file" }));
            let Reply::Opened(opened) = ask(node, open) else { panic!("it is there") };
            opened.flags
        };
        let first = Server::new(&tree, began, || 0);
        let ask = |operation| {
            let request =
                Request { unique: 2, resent: false, node: 1, uid: 1, gid: 1, pid: 0, operation };
            first.serve(&request, &mut [0; 4096])
        };
        assert!(matches!(ask(Operation::Init(offer)), Reply::Started(_)));
        node_of(ask(make_file(b"file")));
        let before = flags(&first);
        for later in [Cache::Direct, Cache::WriteThrough] {
            assert_eq!(flags(&Server::new(&tree, later, || 0)), before, "{began:?}, {later:?}");
        }
    }
}
