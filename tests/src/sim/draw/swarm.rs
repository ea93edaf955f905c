//! Which kinds of trouble there are at all in a life. A life in which everything goes a little wrong hides what only
//! happens where one thing goes wrong often, or where another does not; so each life leaves kinds out (swarm testing).

use super::choices::Choices;

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Forks that fail, or are slow, or whose child dies at once.
    Forks,
    /// A store that is slow or fails.
    Store,
    /// Notices that are late or lost.
    Lateness,
    /// The daemon or the machine stands still.
    Gaps,
    /// The wall clock is set.
    Wall,
    /// Orphans of strangers.
    Orphans,
    /// Signals to the supervisor.
    Signals,
    /// The daemon is killed.
    Crash,
    /// Prompts are taken back.
    Cancels,
    /// Processes that are slow to begin, or do not do as they are told.
    Natures,
    /// Processes that hang, die or close what they should not.
    Wrongs,
    /// Bytes that are no frames, frames out of place.
    Rubbish,
    /// Processes of processes.
    Offspring,
    /// Kills by other runs.
    Kills,
    /// Operators that kill, pause and look.
    Operators,
    /// Warm runs and what is said to them.
    Talk,
    /// Waiting for others.
    Awaits,
    /// A plan with items that are bound to runs.
    Plans,
    /// A queue for permits.
    Queue,
    /// A driver that looks around now and then.
    Turns,
    /// Small pipes, short reads and writes.
    Pieces,
    /// Calls that are wrong.
    Flaws,
    /// Limits that are easily met.
    Limits,
    /// Runs that delegate to runs that delegate, and stay for a while.
    Families,
}

/// What a life is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Swarm(u64);

impl Swarm {
    /// Half of all kinds, any half; at times all.
    pub(super) fn draw(rng: &mut Choices) -> Swarm {
        // A byte at a time, so that bytes can be given for it.
        let half = (0..3).fold(0, |bits, _| bits << 8 | rng.below(256));
        Swarm(if rng.below(8) == 0 { u64::MAX } else { half })
    }

    /// Whether there is trouble of this kind.
    pub(super) fn has(self, trouble: Trouble) -> bool {
        self.0 >> (trouble as u32) & 1 == 1
    }
}
