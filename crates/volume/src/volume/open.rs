//! Opening a volume: on the memory of a process that died, or on what a machine that stopped left.
//!
//! Promise: what was acknowledged is there before anybody is served.
//! Never: looks at the notes of names after the machine stopped.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use holdfast_io::{Clock, Files};
use holdfast_log::CommitLog;

use super::{Attached, Class, DirectoryVolume};
use crate::changes::xattr::Gate;
use crate::clean::aside::Aside;
use crate::clean::cleaner::Cleaner;
use crate::clean::error::CleanError;
use crate::clean::forecast::Forecast;
use crate::clean::frames::{WindowMax, tells_inodes};
use crate::clean::in_turn::InTurn;
use crate::error::VolumeError;
use crate::home::room_unit::RoomUnit;
use crate::home::settling::Settling;
use crate::home::space::SpaceGate;
use crate::home::tried::Tried;
use crate::names::Names;
use crate::names::roster::Roster;
use crate::overlay::kept::KeptFiles;
use crate::overlay::writing::WritingFiles;
use crate::shares::Shares;
use crate::{own, replay, words};

impl DirectoryVolume {
    /// Opens the volume whose changes `log` has, and recovers it. Nobody else reads that log.
    ///
    /// If a volume has been open on this memory before (its process died), memory is rebuilt from
    /// the frames in the ring and service can go on. Otherwise (the machine stopped) whatever the
    /// log has is applied to the home first.
    ///
    /// # Errors
    /// See [`VolumeError`]; opening may be tried again.
    pub fn open(
        home: Arc<dyn Files>,
        log: Arc<dyn CommitLog>,
        clock: Arc<dyn Clock>,
        class: Class,
    ) -> Result<(DirectoryVolume, Attached), VolumeError> {
        DirectoryVolume::open_beside(home, log, clock, class, None)
    }

    /// [`DirectoryVolume::open`], with the directory of the log at hand: what the home can never
    /// take is put aside there, once somebody orders it.
    ///
    /// # Errors
    /// See [`VolumeError`]; opening may be tried again.
    pub fn open_beside(
        home: Arc<dyn Files>,
        log: Arc<dyn CommitLog>,
        clock: Arc<dyn Clock>,
        class: Class,
        log_files: Option<Arc<dyn Files>>,
    ) -> Result<(DirectoryVolume, Attached), VolumeError> {
        let aside = Aside::load(log_files, log.marks().released).map_err(CleanError::Aside)?;
        let process_died = log.word(words::OPENED).map_err(CleanError::Word)? != 0;
        let roster = Roster::default();
        let (known, requests) = match process_died {
            true => roster.known(&*home, &*log)?,
            false => Default::default(),
        };
        let (next_free, told) = replay::look_ahead(&*log)?;
        let root = home.metadata("".as_ref()).map_err(|error| VolumeError::Home(error.into()))?;
        let space = home.space().map_err(|error| VolumeError::Home(error.into()))?;
        let shares = Arc::new(Shares::default());
        let volume = DirectoryVolume {
            name_bytes_max: space.name_bytes_max as usize,
            space: SpaceGate::new(RoomUnit::of(&space)),
            xattrs: Gate::default(),
            can_exchange: OnceLock::new(),
            tried: Tried::default(),
            roster,
            kept_files: KeptFiles::default(),
            writing: WritingFiles::new(shares.clone(), home.open_max()),
            shares,
            forecast: {
                let max = WindowMax::of(&*home, log.ring_bytes());
                Forecast::new(tells_inodes(&*home), max)
            },
            settling: Settling::default(),
            waiting_for_room: AtomicU64::new(0),
            lets_go: AtomicBool::new(false),
            cleaning: InTurn::new(Cleaner::new(log.marks().released, aside)),
            names: RwLock::new(Names::new(&root, known, next_free)),
            counting: Mutex::new(()),
            home,
            log,
            clock,
            class,
            lease: OnceLock::new(),
        };
        volume.names_mut().requests = requests;
        volume.names_mut().mark_home(&*volume.home, &root);
        volume.names_mut().tell_homes(told);
        let tells = volume.log.word(words::INODES_TOLD).map_err(CleanError::Word)? != 0;
        volume.names_mut().rely_on_roster(process_died && tells);
        // A home that cannot tell now is asked again where it matters.
        let _ = volume.space.limits(&*volume.home);
        let attached = match process_died {
            true => volume.take_over()?,
            false => volume.begin()?,
        };
        volume.note_touched()?;
        Ok((volume, attached))
    }

    /// Has the next open begin as after a restart of the machine. For a volume whose node numbers
    /// no kernel knows any more; its notes of names are not looked at then.
    ///
    /// # Errors
    /// [`VolumeError::Clean`]: the log does not take the word.
    pub fn forget_kernel(log: &dyn CommitLog) -> Result<(), VolumeError> {
        Ok(log.set_word(words::OPENED, 0).map_err(CleanError::Word)?)
    }

    /// Goes on where another process died: the kernel may know its node numbers.
    fn take_over(&self) -> Result<Attached, VolumeError> {
        let bytes_applied = crate::clean::finish_begun(self)?;
        self.reread_root()?;
        let records_replayed = replay::replay(self)?;
        self.names_mut().complete();
        self.open_again_for_writing();
        self.names_mut().find_unreachable(&*self.home);
        let roster = self.names_mut().roster();
        self.roster.take_over(self.own_room(), &*self.log, roster)?;
        Ok(Attached { records_replayed, bytes_applied })
    }

    /// Begins on a home of which nothing is known but that it has everything below the released
    /// mark. What is above may be there in part. One that dies on the way is begun again.
    fn begin(&self) -> Result<Attached, VolumeError> {
        let unfitness = crate::home::fitness::unfitness(&*self.home);
        if let Some(why) = unfitness.map_err(|error| VolumeError::Home(error.into()))? {
            return Err(VolumeError::Unfit(why));
        }
        self.log.commit(self.log.marks().tail).map_err(CleanError::Log)?;
        let bytes_applied = self.apply_all()?;
        self.names_mut().end_told();
        self.names_mut().complete();
        self.cleaning.now().close_aside()?;
        // No kernel knows the files without a name that programs had open.
        crate::clean::remove_orphans(&*self.home, None)?;
        self.reread_root()?;
        let nothing = self.roster.rewrite(self.own_room(), &*self.log, Vec::new());
        nothing.map_err(VolumeError::Home)?;
        self.log.set_word(words::INODES_TOLD, 1).map_err(CleanError::Word)?;
        self.log.set_word(words::OPENED, 1).map_err(CleanError::Word)?;
        Ok(Attached { records_replayed: 0, bytes_applied })
    }

    /// The root's attributes once the home is where the log says it is.
    fn reread_root(&self) -> Result<(), VolumeError> {
        let root = self.home.metadata("".as_ref());
        let mut root = root.map_err(|error| VolumeError::Home(error.into()))?;
        // Nobody sees the volume's own directory. One link means that they are not counted.
        let own = self.home.metadata(own::NAME.as_ref());
        root.links -= u32::from(root.links > 1 && own.is_ok());
        self.names_mut().reread_root(&root);
        Ok(())
    }

    /// Applies everything that is durable in the log.
    fn apply_all(&self) -> Result<u64, CleanError> {
        let mut bytes = 0;
        loop {
            let cleaned = self.clean_step()?;
            bytes += cleaned.bytes;
            if cleaned.is_idle() {
                return Ok(bytes);
            }
        }
    }
}
