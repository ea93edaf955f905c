//! What can happen next.

/// What may happen at all in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The store saves what it was handed first.
    Stored,
    /// It cannot.
    StoreFails,
    /// The process that was asked for first is made.
    Spawned,
    /// It cannot be made.
    SpawnFails,
    /// A child says `ready`.
    Ready,
    /// A child reports what a model call used.
    Progress,
    /// A child sends its result, and a second time.
    Result,
    /// A child writes bytes that are no frame.
    Rubbish,
    /// A child's stdout ends.
    Eof,
    /// A child exits, or that it did is learned.
    Exit,
    /// A person kills a child.
    Killed,
    /// An operator has a run killed.
    Kill,
    /// A child answers nothing any more.
    Hang,
    /// The next timer of the core is due.
    Timer,
    /// SIGTERM comes, and a second one.
    Term,
}

/// One thing that happens; the number is which of the two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Stored,
    StoreFails,
    Spawned,
    SpawnFails,
    Ready(usize),
    Progress(usize),
    Result(usize),
    Rubbish(usize),
    Eof(usize),
    Exit(usize),
    Killed(usize),
    Kill(usize),
    Hang(usize),
    Timer,
    Term,
}

impl Step {
    /// The step of a kind, where that is about one of the runs.
    pub(super) fn of_run(kind: Kind, run: usize) -> Option<Step> {
        match kind {
            Kind::Ready => Some(Step::Ready(run)),
            Kind::Progress => Some(Step::Progress(run)),
            Kind::Result => Some(Step::Result(run)),
            Kind::Rubbish => Some(Step::Rubbish(run)),
            Kind::Eof => Some(Step::Eof(run)),
            Kind::Exit => Some(Step::Exit(run)),
            Kind::Killed => Some(Step::Killed(run)),
            Kind::Kill => Some(Step::Kill(run)),
            Kind::Hang => Some(Step::Hang(run)),
            Kind::Stored | Kind::StoreFails | Kind::Spawned | Kind::SpawnFails | Kind::Timer | Kind::Term => {
                None
            }
        }
    }

    /// The step of a kind that is about nobody.
    pub(super) fn of_all(kind: Kind) -> Option<Step> {
        match kind {
            Kind::Stored => Some(Step::Stored),
            Kind::StoreFails => Some(Step::StoreFails),
            Kind::Spawned => Some(Step::Spawned),
            Kind::SpawnFails => Some(Step::SpawnFails),
            Kind::Timer => Some(Step::Timer),
            Kind::Term => Some(Step::Term),
            Kind::Ready
            | Kind::Progress
            | Kind::Result
            | Kind::Rubbish
            | Kind::Eof
            | Kind::Exit
            | Kind::Killed
            | Kind::Kill
            | Kind::Hang => None,
        }
    }
}
