//! The messages of the control protocol (S2.4), both ways. One struct a type; the frame around them (`t`, `n`)
//! is `wire::codec`'s. Later protocol versions only add types and optional keys.

mod down;
mod spawn;
mod up;

pub use down::*;
pub use spawn::*;
pub use up::*;

use serde::{Deserialize, Serialize};

/// The protocol's version, `[major, minor]`, in the first frame each way. A different major ends the child.
pub const VERSION: [u16; 2] = [1, 3];

/// Registry name of the conversation's tool that ends its turn: the loop answers it itself (S6.10).
pub const FINISH_TOOL: &str = "finish";

/// Supervisor to child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Down {
    /// First and once: all that the child is given (S3.1).
    Spawn(Box<Spawn>),
    /// Asks for a `pong` with the same number.
    Ping(Ping),
    /// End now, at the next point that can (S7.9).
    Cancel(Cancel),
    /// The one answer to a `tool_request`.
    ToolResult(ToolResult),
    /// A warm child's next turn.
    Message(Text),
    /// Something to be told at the next step of the turn in hand (S6.9).
    Steer(Text),
    /// One last model call without tools, then the result as it is (S6.9).
    Finish(Finish),
    /// Stand still from the next boundary on; that time counts against no deadline (S6.9).
    Pause(Pause),
    /// Go on.
    Resume(Resume),
    /// An endpoint of the model is to be left alone for a while, or no longer (S15.4).
    Throttle(Throttle),
    /// The one answer to a `budget_request`.
    BudgetGrant(BudgetGrant),
    /// The model to go on with (S10.8). Answered by an `ack` once it is taken.
    Model(Box<ModelSwap>),
}

/// Child to supervisor.
#[derive(Debug, Clone, PartialEq)]
pub enum Up {
    /// First: the child has read its spawn frame and lives; sent before servers and models are dialled (S9.1).
    Ready(Ready),
    /// Answers a `ping` by number.
    Pong(Pong),
    /// Progress and log, for people.
    Event(Event),
    /// What the run waits on from now on (S17.1c).
    State(State),
    /// What one model call used; sent after every call.
    Usage(Usage),
    /// What one server offers, once connected (S3.6).
    Tools(Tools),
    /// A call of a tool that the supervisor owns.
    ToolRequest(ToolRequest),
    /// A `message` or a `steer` has been taken: it is in the history. Or a `model`: every call from here on is made with it,
    /// and none before it is in flight.
    Ack(Ack),
    /// How an endpoint of the model was when it was last asked, so that other runs know (S15.4).
    ModelHealth(ModelHealth),
    /// A warm child's turn has ended; it waits for the next message.
    Turn(Turn),
    /// Terminal: the loop ended with this.
    Result(RunResult),
    /// Terminal: the child could not end in a result.
    Failed(Failed),
    /// Asks whether a model call may be made (S15.6). Only of a child whose first frame has `budget`.
    BudgetRequest(BudgetRequest),
}
