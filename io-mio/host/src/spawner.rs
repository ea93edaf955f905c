//! The thread that makes every child.
//!
//! One thread for the daemon's life: the parent-death signal of a child follows the thread that made it, and a
//! slow spawn never holds up the reactor. Owns the making: pipes, the process in a group of its own, its pidfd,
//! its walls. Refuses whatever would make std fork instead of vfork (hooks, ids, a program without a slash).
//! Every order gets exactly one answer, and nothing a spawn can meet ends the thread. Called by the hands.

use crate::error::OsError;
use crate::nursery::Nursery;
use crate::process::{Pid, Process};
use crate::{marker, pipes, walls};
use agentd_core::action::Walls;
use agentd_core::id::NodeId;
use rustix::pipe::PipeFlags;
use rustix::process::{WaitId, WaitIdOptions};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

/// Spawns that may wait for the thread. One more fails as transient, and the core tries it again.
const ORDERS: usize = 1_024;

/// The program that children are, and what all of them are started with.
#[derive(Debug, Clone)]
pub struct Image {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    /// The soft limit of descriptors of each child; as inherited when absent.
    descriptors: Option<u64>,
}

impl Image {
    /// The running binary itself, also when its file was replaced or deleted since, with exactly the variables
    /// `env` and the markers.
    pub fn own(env: Vec<(OsString, OsString)>) -> Image {
        Image { program: "/proc/self/exe".into(), args: Vec::new(), env, descriptors: None }
    }

    /// Another program, for embedders and tests; `None` when `program` is a bare name: a search in `PATH`
    /// would make every spawn a fork of the whole supervisor.
    pub fn of(program: &Path, args: Vec<OsString>, env: Vec<(OsString, OsString)>) -> Option<Image> {
        let is_path = program.as_os_str().as_encoded_bytes().contains(&b'/');
        is_path.then(|| Image { program: program.to_owned(), args, env, descriptors: None })
    }

    /// The same, with this soft limit of open descriptors: that of before the supervisor raised its own
    /// ([`crate::descriptors::raise`]).
    #[must_use]
    pub fn with_descriptors(self, soft: Option<u64>) -> Image {
        Image { descriptors: soft, ..self }
    }
}

/// One child to make.
#[derive(Debug)]
pub struct Order {
    /// The answer's name.
    pub node: NodeId,
    /// Its `argv[0]`, and what it is told to call itself.
    pub name: String,
    /// Its limits.
    pub walls: Walls,
}

/// A child that exists, is walled, and waits for its first frame.
#[derive(Debug)]
pub struct Born {
    /// The process.
    pub process: Process,
    /// Our end of its stdin; never waits.
    pub stdin: OwnedFd,
    /// Our end of its stdout; never waits.
    pub stdout: OwnedFd,
    /// Our end of its stderr; never waits.
    pub stderr: OwnedFd,
}

/// Why there is no child.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct SpawnError {
    /// The call and what the system said.
    pub what: String,
    /// It may succeed later: the system was out of processes, memory or descriptors.
    pub transient: bool,
}

/// The one answer to an order.
pub type Answer = (NodeId, Result<Born, SpawnError>);

/// The handle of the thread. Dropping it ends the thread once it is idle, and with it, by their parent-death
/// signal, every child that is left.
#[derive(Debug)]
pub struct Spawner {
    orders: Option<SyncSender<Request>>,
    nursery: Arc<Nursery>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Request {
    Make(Order),
    /// A child that could not be taken over: end it, and say so when it is gone.
    Discard(NodeId, Process, SpawnError),
}

impl Spawner {
    /// Starts the thread. It inherits the caller's signal mask; `wake` is called from it after every answer.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(image: Image, nursery: Arc<Nursery>, wake: Box<dyn Fn() + Send>) -> io::Result<Spawner> {
        let (orders, taken) = sync_channel(ORDERS);
        let (told, answers) = channel();
        let making = Making { image, nursery: Arc::clone(&nursery), own: Pid::own() };
        let thread = std::thread::Builder::new()
            .name("agentd-spawn".to_owned())
            .spawn(move || making.run(&taken, &told, &wake))?;
        Ok(Spawner { orders: Some(orders), nursery, answers, thread: Some(thread) })
    }

    /// Hands in an order.
    ///
    /// # Errors
    /// Too many wait, or the thread is gone; this is then the order's answer.
    pub fn order(&self, order: Order) -> Result<(), SpawnError> {
        self.request(Request::Make(order)).map_err(|(full, _)| SpawnError {
            what: if full {
                format!("the spawner has {ORDERS} spawns waiting and takes no more")
            } else {
                "the spawner's thread has ended".to_owned()
            },
            transient: full,
        })
    }

    /// Ends a child that was made and cannot be watched; its order is answered with `error` once it is gone.
    ///
    /// # Errors
    /// The thread cannot take it: it is gone already, and `error` is the order's answer.
    pub fn discard(&self, node: NodeId, process: Process, error: SpawnError) -> Result<(), SpawnError> {
        let (process, error) = match self.request(Request::Discard(node, process, error)) {
            Err((_, Request::Discard(_, process, error))) => (process, error),
            Ok(()) | Err((_, Request::Make(_))) => return Ok(()),
        };
        let pid = process.pid();
        let _reaped = process.kill_and_reap();
        self.nursery.release(pid);
        Err(error)
    }

    /// The next answer, if there is one.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    /// Whether the queue was full, and the request back.
    fn request(&self, request: Request) -> Result<(), (bool, Request)> {
        let Some(orders) = &self.orders else { return Err((false, request)) };
        orders.try_send(request).map_err(|e| match e {
            TrySendError::Full(request) => (true, request),
            TrySendError::Disconnected(request) => (false, request),
        })
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        while let Some((_, result)) = self.answer() {
            if let Ok(born) = result {
                let _reaped = born.process.kill_and_reap();
            }
        }
    }
}

/// The thread's own.
struct Making {
    image: Image,
    nursery: Arc<Nursery>,
    own: Pid,
}

impl Making {
    fn run(self, orders: &Receiver<Request>, answers: &Sender<Answer>, wake: &(dyn Fn() + Send)) {
        for request in orders {
            let answer = match request {
                Request::Make(order) => (order.node, self.make_whatever_happens(&order)),
                Request::Discard(node, process, error) => {
                    let pid = process.pid();
                    let _reaped = process.kill_and_reap();
                    self.nursery.release(pid);
                    (node, Err(error))
                }
            };
            if answers.send(answer).is_err() {
                return;
            }
            wake();
        }
    }

    /// A panic in the making of one child is that child's failure and not the end of all spawning.
    fn make_whatever_happens(&self, order: &Order) -> Result<Born, SpawnError> {
        self.nursery.begin();
        let made = catch_unwind(AssertUnwindSafe(|| self.make(order))).unwrap_or_else(|_| {
            Err(SpawnError { what: "a panic in the spawner, a bug".to_owned(), transient: false })
        });
        self.nursery.end(made.as_ref().ok().map(|born| born.process.pid()));
        made
    }

    fn make(&self, order: &Order) -> Result<Born, SpawnError> {
        let (their_stdin, stdin) = pipe("the child's stdin")?;
        let (stdout, their_stdout) = pipe("the child's stdout")?;
        let (stderr, their_stderr) = pipe("the child's stderr")?;
        for ours in [&stdin, &stdout, &stderr] {
            pipes::set_nonblocking(ours).map_err(OsError::of("fcntl(O_NONBLOCK)", "the child's pipes"))?;
        }
        let pid = self.start(order, [their_stdin, their_stdout, their_stderr])?;
        let process = match Process::open(pid) {
            Ok(process) => process,
            Err(e) => {
                end_unheld(pid);
                return Err(OsError::of("pidfd_open(2)", "the new child")(e).into());
            }
        };
        let walled = walls::apply(pid, &order.walls);
        let walled = walled
            .and_then(|()| self.image.descriptors.map_or(Ok(()), |soft| walls::lower_descriptors(pid, soft)));
        if let Err(e) = walled {
            let _reaped = process.kill_and_reap();
            return Err(SpawnError { what: e.to_string(), transient: false });
        }
        Ok(Born { process, stdin, stdout, stderr })
    }

    /// posix_spawn(3) by way of std. The returned `Child` is dropped at once: that neither waits nor reaps.
    fn start(&self, order: &Order, ends: [OwnedFd; 3]) -> Result<Pid, SpawnError> {
        let [stdin, stdout, stderr] = ends.map(Stdio::from);
        let child = Command::new(&self.image.program)
            .arg0(&order.name)
            .args(&self.image.args)
            .env_clear()
            .envs(self.image.env.iter().map(|(name, value)| (name, value)))
            .env(marker::SUBAGENT, "1")
            .env(marker::PARENT_PID, self.own.to_string())
            .env(marker::NAME, &order.name)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(|source| {
                let transient = is_transient(&source);
                SpawnError {
                    what: format!("posix_spawn(3) of {}: {source}", self.image.program.display()),
                    transient,
                }
            })?;
        i32::try_from(child.id()).ok().and_then(Pid::new).ok_or_else(|| SpawnError {
            what: format!("the system named a child {}, which is no pid", child.id()),
            transient: false,
        })
    }
}

/// Reading end, writing end; neither is inherited by anybody else.
fn pipe(on: &'static str) -> Result<(OwnedFd, OwnedFd), SpawnError> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(OsError::of("pipe2(2)", on))?)
}

/// Ends a child of which there is no pidfd. Its number is its own exactly while it is this process's to wait for;
/// where somebody else reaps (SIGCHLD ignored, a foreign wait) it may be a stranger's already.
fn end_unheld(pid: Pid) {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    if rustix::process::waitid(WaitId::Pid(pid.rustix()), look).is_ok() {
        let _gone = rustix::process::kill_process_group(pid.rustix(), rustix::process::Signal::KILL);
        let _reaped = rustix::process::waitid(WaitId::Pid(pid.rustix()), WaitIdOptions::EXITED);
    }
}

impl From<OsError> for SpawnError {
    fn from(e: OsError) -> SpawnError {
        SpawnError { transient: is_transient(&e.source), what: e.to_string() }
    }
}

/// What passes when others end: too many processes or descriptors, too little memory.
fn is_transient(e: &io::Error) -> bool {
    use nix::libc::{EAGAIN, EMFILE, ENFILE, ENOMEM};
    matches!(e.raw_os_error(), Some(EAGAIN | ENOMEM | EMFILE | ENFILE))
}
