//! Connections that come only to take places: silent, slow, many, from many addresses.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

use holdfast_front::nbd::Listener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use tempfile::TempDir;

use crate::messages::{hello, opening};
use crate::random::{Random, for_seeds};
use crate::served::{CONFIG, Client, Disk, Patient, Server};
use crate::tls::Setting;

const SIZE: usize = 1 << 16;

/// Those that may be about to choose an export: see the front end's `gate`.
const HESITANT_MAX: usize = 32;
const HESITANT_OF_PEER: usize = 16;

/// A server with two ways in.
struct Doors {
    folder: TempDir,
    address: SocketAddr,
    server: Server,
}

impl Doors {
    fn new() -> Doors {
        let folder = tempfile::tempdir().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let unix = UnixListener::bind(folder.path().join("nbd")).unwrap();
        let listeners = vec![Listener::new(tcp).unwrap(), Listener::new(unix).unwrap()];
        let server = Server::start(listeners, Vec::new(), Disk::in_memory(SIZE), CONFIG);
        Doors { folder, address, server }
    }

    fn unix(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("nbd")).unwrap()
    }

    /// A connection from one of the machine's own addresses.
    fn tcp(&self, last: u8) -> TcpStream {
        let from = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&from, &SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))).unwrap();
        connect(&from, &self.address).unwrap();
        from.into()
    }
}

/// A client that keeps to the protocol is served at its first attempt.
fn assert_serves(stream: impl Patient) {
    let mut client = Client::open(stream, true);
    assert_eq!(client.read(0, 3), [0; 3]);
}

/// Those whose connection has not ended.
fn alive(streams: &[impl AsFd]) -> usize {
    let ended = |stream: &&_| {
        let mut polled = [PollFd::new(*stream, PollFlags::RDHUP)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    };
    streams.len() - streams.iter().filter(ended).count()
}

#[test]
fn silent_clients_at_one_socket_take_no_place_at_another() {
    let doors = Doors::new();
    let silent: Vec<_> = (0..200).map(|_| doors.tcp(1)).collect();
    assert_serves(doors.unix());
    assert_serves(doors.tcp(1));
    assert!(alive(&silent) <= HESITANT_OF_PEER, "{} of one address wait", alive(&silent));
    assert_eq!(doors.server.stop().len(), alive(&silent));
}

#[test]
fn clients_that_do_not_come_to_tls_shut_nobody_out_who_does() {
    let setting = Setting::new();
    let silent: Vec<_> = (0..80).map(|_| setting.connect()).collect();
    let plain: Vec<_> = (0..80).map(|_| setting.about_to_shake_hands()).collect();
    setting.assert_serves();
    drop((silent, plain));
}

#[test]
fn silent_clients_from_every_address_of_the_machine_shut_nobody_out_who_is_shaking_hands() {
    let setting = Setting::new();
    let shaking = [setting.about_to_shake_hands()];
    let from = |it: u32| Ipv4Addr::new(127, 1 + (it / 250) as u8, 7, 1 + (it % 250) as u8);
    let silent: Vec<_> = (0..1000).map(|it| setting.connect_from(from(it))).collect();
    setting.assert_serves();
    assert_eq!(alive(&shaking.map(|it| it.stream)), 1, "it is pushed out");
    assert!(alive(&silent) <= HESITANT_OF_PEER, "{} of one machine wait", alive(&silent));
}

#[test]
fn who_has_chosen_an_export_is_not_pushed_out_by_any_number_that_has_not() {
    let doors = Doors::new();
    let mut chosen = Client::open(doors.tcp(1), true);
    let flood: Vec<_> = (0..300_u32).map(|it| doors.tcp(1 + (it % 50) as u8)).collect();
    assert_serves(doors.tcp(77));
    assert_eq!(chosen.read(0, 3), [0; 3]);
    assert!(alive(&flood) <= HESITANT_MAX, "{} wait", alive(&flood));
}

/// Does one thing that no good client does.
fn act(doors: &Doors, random: &mut Random, tcp: &mut Vec<TcpStream>, unix: &mut Vec<UnixStream>) {
    let address = 1 + random.below(9) as u8;
    let part = |random: &mut Random| {
        let said = opening(b"disk", true);
        said[..random.below(said.len() as u64 - 40) as usize].to_vec()
    };
    let say = |stream: &mut dyn std::io::Write, bytes: &[u8]| {
        // It may have been pushed out.
        let _ = stream.write_all(bytes);
    };
    match random.below(8) {
        0 | 1 => tcp.push(doors.tcp(address)),
        2 => unix.push(doors.unix()),
        3 => {
            tcp.push(doors.tcp(address));
            say(tcp.last_mut().unwrap(), &part(random));
        }
        4 => {
            unix.push(doors.unix());
            say(unix.last_mut().unwrap(), &part(random));
        }
        5 => tcp.extend((0..30).map(|_| doors.tcp(address))),
        6 if !tcp.is_empty() => {
            let at = random.below(tcp.len() as u64) as usize;
            match random.below(3) {
                0 => drop(tcp.swap_remove(at)),
                1 => say(&mut tcp[at], &hello()[..1]),
                _ => drop(tcp[at].shutdown(std::net::Shutdown::Write)),
            }
        }
        _ if !unix.is_empty() => drop(unix.swap_remove(random.below(unix.len() as u64) as usize)),
        _ => {}
    }
}

#[test]
fn whatever_strangers_do_they_are_few_and_a_good_client_is_served_at_every_socket() {
    for_seeds("strangers::whatever_strangers_do", 4, |random: &mut Random| {
        let (doors, mut tcp, mut unix) = (Doors::new(), Vec::new(), Vec::new());
        let mut chosen = Client::open(doors.unix(), true);
        for step in 0..120 {
            act(&doors, random, &mut tcp, &mut unix);
            if random.below(5) > 0 {
                continue;
            }
            println!("step {step}: good clients come");
            assert_serves(doors.tcp(100));
            assert_serves(doors.unix());
            assert_eq!(chosen.read(0, 3), [0; 3], "step {step}");
            // Who came before these was let in before them.
            assert!(alive(&tcp) <= HESITANT_MAX, "step {step}: {} at TCP", alive(&tcp));
            assert!(alive(&unix) <= HESITANT_OF_PEER, "step {step}: {} of a user", alive(&unix));
        }
    });
}
