//! What is going to happen, by virtual time. Things of one stream keep their order however they are delayed
//! (bytes of one pipe, answers of the store); things of different streams overtake each other freely.

use agentd_core::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Things that keep their order among themselves; the number tells streams of one kind apart.
pub(crate) type Stream = (Lane, u64);

/// Kinds of streams: of what is to happen, and of the luck that each party draws from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// What people ask for.
    Start,
    /// The end that every daemon has.
    Stop,
    /// A planned fault.
    Fault,
    /// The store.
    Store,
    /// The thread that makes processes.
    Spawner,
    /// Births, exits, sweeps and reapings of one node.
    Life,
    /// What leaves for one node.
    Down,
    /// What is read of one node.
    Read,
    /// What one node grumbles.
    Stderr,
    /// How late an exit is noticed.
    Exit,
    /// One node's program.
    Turn,
    /// The driver's timer.
    Timer,
    /// What is done from outside, as it is seen that it is time.
    Operator,
    /// Strangers.
    Stranger,
    /// How long one node takes to die.
    Dying,
    /// In what order what is learned at once is handed over.
    Order,
    /// Something that overtakes and is overtaken.
    Alone,
}

impl Lane {
    /// What its luck is drawn by.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Lane::Start => "start",
            Lane::Stop => "stop",
            Lane::Fault => "fault",
            Lane::Store => "store",
            Lane::Spawner => "spawner",
            Lane::Life => "life",
            Lane::Down => "down",
            Lane::Read => "read",
            Lane::Stderr => "stderr",
            Lane::Exit => "exit",
            Lane::Turn => "turn",
            Lane::Timer => "timer",
            Lane::Operator => "operator",
            Lane::Stranger => "stranger",
            Lane::Dying => "dying",
            Lane::Order => "order",
            Lane::Alone => "alone",
        }
    }
}

/// A queue by time, first come first served within an instant.
pub(crate) struct Agenda<T> {
    items: BTreeMap<(Instant, u64), (Stream, T)>,
    last: BTreeMap<Stream, Instant>,
    serial: u64,
}

impl<T> Agenda<T> {
    /// An empty one.
    pub(crate) fn new() -> Agenda<T> {
        Agenda { items: BTreeMap::new(), last: BTreeMap::new(), serial: 0 }
    }

    /// Puts `item` at `at`, or later where its stream is later already.
    pub(crate) fn push(&mut self, at: Instant, stream: Stream, item: T) {
        let at = at.max(self.last.get(&stream).copied().unwrap_or(Instant::ZERO));
        self.last.insert(stream, at);
        self.serial += 1;
        self.items.insert((at, self.serial), (stream, item));
    }

    /// Puts `item` at `at` on its own: it overtakes and is overtaken.
    pub(crate) fn push_alone(&mut self, at: Instant, item: T) {
        self.serial += 1;
        self.items.insert((at, self.serial), ((Lane::Alone, self.serial), item));
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.items.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next thing.
    pub(crate) fn pop(&mut self) -> Option<(Instant, T)> {
        self.items.pop_first().map(|((at, _), (_, item))| (at, item))
    }

    /// The first thing of every stream that happens no later than `until`, in order.
    pub(crate) fn heads(&self, until: Instant) -> Vec<Stream> {
        let mut seen = BTreeSet::new();
        let due = self.items.iter().take_while(|((at, _), _)| *at <= until);
        due.filter(|(_, (stream, _))| seen.insert(*stream)).map(|(_, (stream, _))| *stream).collect()
    }

    /// Takes the first thing of one of the streams that come first at the next instant; `luck` says of which, given how
    /// many there are.
    pub(crate) fn pop_by_luck(&mut self, luck: impl FnOnce(usize) -> usize) -> Option<(Instant, T)> {
        /// Enough to mix what is learned at once, however much that is.
        const LOOK: usize = 64;
        let first = self.next_at()?;
        let mut heads: Vec<(Stream, (Instant, u64))> = Vec::new();
        for (key, (stream, _)) in self.items.iter().take(LOOK).take_while(|((at, _), _)| *at == first) {
            if heads.iter().all(|(known, _)| known != stream) {
                heads.push((*stream, *key));
            }
        }
        let (_, key) = heads.get(luck(heads.len())).copied().or_else(|| heads.first().copied())?;
        self.items.remove(&key).map(|(_, item)| (key.0, item))
    }

    /// Takes the first thing of `stream`.
    pub(crate) fn pop_of(&mut self, stream: Stream) -> Option<(Instant, T)> {
        let key = self.items.iter().find(|(_, (s, _))| *s == stream).map(|(key, _)| *key)?;
        self.items.remove(&key).map(|(_, item)| (key.0, item))
    }

    /// Forgets what `which` names.
    pub(crate) fn cancel(&mut self, which: impl Fn(&T) -> bool) {
        self.items.retain(|_, (_, item)| !which(item));
    }

    /// Takes what `which` names, by time.
    pub(crate) fn take_all<U>(&mut self, which: impl Fn(&T) -> Option<U>) -> Vec<U> {
        let mut taken = Vec::new();
        self.items.retain(|_, (_, item)| match which(item) {
            Some(it) => {
                taken.push(it);
                false
            }
            None => true,
        });
        taken
    }

    /// Puts off what `which` names and is due before `until` to then, in the order it had.
    pub(crate) fn put_off(&mut self, until: Instant, which: impl Fn(&T) -> bool) {
        let early = self.items.range(..(until, 0)).filter(|(_, (_, item))| which(item)).map(|(key, _)| *key);
        for (at, serial) in early.collect::<Vec<_>>() {
            if let Some(item) = self.items.remove(&(at, serial)) {
                self.items.insert((until, serial), item);
            }
        }
    }

    /// The whole world slept: everything happens that much later.
    pub(crate) fn postpone(&mut self, by: Duration) {
        let items = std::mem::take(&mut self.items);
        self.items = items.into_iter().map(|((at, serial), item)| ((at + by, serial), item)).collect();
        for last in self.last.values_mut() {
            *last = *last + by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn a_stream_keeps_its_order_and_others_overtake() {
        let mut agenda = Agenda::new();
        agenda.push(ms(50), (Lane::Read, 1), "late bytes");
        agenda.push(ms(10), (Lane::Read, 1), "end of file");
        agenda.push(ms(20), (Lane::Exit, 1), "exit");
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop()).map(|(at, x)| (at.millis(), x)).collect();
        assert_eq!(order, [(20, "exit"), (50, "late bytes"), (50, "end of file")]);
    }

    #[test]
    fn what_is_put_off_keeps_its_order() {
        let mut agenda = Agenda::new();
        agenda.push(ms(10), (Lane::Operator, 1), "pause");
        agenda.push(ms(20), (Lane::Turn, 1), "a program");
        agenda.push(ms(30), (Lane::Operator, 1), "resume");
        for until in [25, 50] {
            agenda.put_off(ms(until), |item| *item != "a program");
        }
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop()).map(|(at, x)| (at.millis(), x)).collect();
        assert_eq!(order, [(20, "a program"), (50, "pause"), (50, "resume")]);
    }

    #[test]
    fn sleep_moves_everything_and_a_stream_can_be_picked() {
        let mut agenda = Agenda::new();
        agenda.push(ms(1), (Lane::Read, 0), 1);
        agenda.push(ms(2), (Lane::Store, 0), 2);
        agenda.push(ms(3), (Lane::Read, 0), 3);
        agenda.postpone(Duration::from_millis(100));
        assert_eq!(agenda.next_at(), Some(ms(101)));
        assert_eq!(agenda.heads(ms(200)), [(Lane::Read, 0), (Lane::Store, 0)]);
        assert_eq!(agenda.heads(ms(101)), [(Lane::Read, 0)]);
        assert_eq!(agenda.pop_of((Lane::Store, 0)).map(|x| x.1), Some(2));
        agenda.cancel(|n| *n == 1);
        assert_eq!(agenda.pop().map(|x| x.1), Some(3));
    }
}
