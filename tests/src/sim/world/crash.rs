//! The daemon is killed: nobody is there any more to do or learn anything, and the machine does what it does then.

use super::{Due, World};
use crate::sim::agenda::Lane;
use agentd_core::event::Exit;
use agentd_core::id::NodeId;
use agentd_core::time::{Duration, Instant};

/// How long what the daemon had made may outlive it (S9.7).
const LAST_GASP: Duration = Duration::from_secs(2);

impl World<'_> {
    /// SIGKILL between two actions.
    pub(super) fn crash(&mut self) {
        self.crashed = Some(self.now);
        self.timer = None;
        self.oracles.crashed();
        let on_the_way = self.disk.on_the_way() as u64;
        let durable = self.chance.below((Lane::Store, 1), on_the_way + 1);
        self.disk.crash(durable as usize, self.next == Some(true));
        let unborn = self.agenda.take_all(|due| match due {
            Due::Born(node, _) => Some(*node),
            Due::Notice(_) | Due::Read(_) | Due::Turn(_) | Due::Dies(..) | Due::Orphan => None,
            Due::Gap { .. } | Due::Room(_) | Due::Wall(_) | Due::KillAll => None,
        });
        self.agenda.cancel(|due| {
            due.is_the_daemons() || matches!(due, Due::Gap { .. } | Due::Orphan | Due::KillAll)
        });
        let parent_death = self.plan.knobs.parent_death;
        let effects = self.kernel.lose_daemon(parent_death);
        self.follow(effects);
        // Every pipe of the daemon is closed; a child reads the end of its stdin.
        let nodes: Vec<NodeId> = self.children.keys().copied().collect();
        for node in nodes {
            if let Some(child) = self.children.get_mut(&node) {
                child.drop_queue();
                child.closing = true;
            }
            self.turn_soon(node);
        }
        for node in unborn {
            self.born_an_orphan(node);
        }
    }

    /// A fork that was on its way as the daemon died: the child finds another parent than it was told of, and leaves.
    fn born_an_orphan(&mut self, node: NodeId) {
        if self.chance.below((Lane::Spawner, 1), 2) == 0 {
            return;
        }
        if let Some((serial, _)) = self.kernel.spawn(node, 0) {
            let at = self.now + self.chance.delay((Lane::Life, node.0));
            self.agenda.push_alone(at, Due::Dies(serial, Exit::Code(2)));
        }
    }

    /// The daemon was killed, and the time that it may take until nobody is left is over, or nothing is to come.
    pub(super) fn is_past_crash(&self) -> bool {
        let over = |at: Instant| self.agenda.next_at().is_none_or(|next| next > at + LAST_GASP);
        self.crashed.is_some_and(over)
    }
}
