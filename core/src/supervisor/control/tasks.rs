//! A client's message as a task: one prompt of the conversation, which is one turn and has one answer. A task ends once, with
//! its prompt's answer, and nothing later changes it.

use super::super::Core;
use super::super::keeping::Shelf;
use super::Wait;
use crate::a2a::{self, Paging, RpcError, TaskState, TaskView, artifact_update, status_update};
use crate::action::Actions;
use crate::config::{Commit, Principal};
use crate::http::Response;
use crate::id::{ConnId, RunId};
use crate::limits;
use crate::record::ResultObject;
use crate::store::{TaskRow, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// All tasks that are known.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tasks {
    context: RunId,
    /// Ids sort by the time they were minted, so the table is in order.
    all: BTreeMap<RunId, Task>,
    by_prompt: BTreeMap<u64, RunId>,
    /// Those that have ended, oldest first.
    ended: VecDeque<RunId>,
    /// Of texts and results of those.
    bytes: usize,
    /// Those that have changed since they were last saved.
    unkept: BTreeSet<RunId>,
    /// Those that have ended and of which nobody hears before that is durable.
    untold: BTreeSet<RunId>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Task {
    row: TaskRow,
    /// Of its text and its result, once it has ended.
    bytes: usize,
}

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks {
            context: RunId::NIL,
            all: BTreeMap::new(),
            by_prompt: BTreeMap::new(),
            ended: VecDeque::new(),
            bytes: 0,
            unkept: BTreeSet::new(),
            untold: BTreeSet::new(),
        }
    }
}

impl Task {
    fn size(&self) -> usize {
        self.row.text.len() + self.row.result.to_string().len()
    }
}

impl Tasks {
    pub(super) fn context(&self) -> RunId {
        self.context
    }

    pub(super) fn state(&self, task: RunId) -> Option<TaskState> {
        let state = self.all.get(&task)?.row.state;
        Some(if self.untold.contains(&task) { TaskState::Working } else { state })
    }

    pub(super) fn principal(&self, task: RunId) -> Option<&str> {
        self.all.get(&task).map(|task| task.row.principal.as_str())
    }

    pub(super) fn prompt(&self, task: RunId) -> Option<u64> {
        self.all.get(&task).map(|task| task.row.prompt)
    }

    /// The task that this message of this principal has begun already.
    pub(super) fn sent_before(&self, principal: &str, message_id: &str) -> Option<RunId> {
        let mut newest_first = self.all.iter().rev();
        let same = |task: &Task| task.row.principal == principal && task.row.message_id == message_id;
        newest_first.find(|(_, task)| same(task)).map(|(id, _)| *id)
    }

    /// A task as its client sees it; null when it is forgotten.
    pub(super) fn json(&self, id: RunId, history: Option<usize>, artifacts: bool) -> Value {
        self.with_view(id, |view| view.json(history, artifacts)).unwrap_or_default()
    }

    fn with_view<T>(&self, id: RunId, show: impl FnOnce(&TaskView<'_>) -> T) -> Option<T> {
        let task = &self.all.get(&id)?.row;
        let told = !self.untold.contains(&id);
        let (id, context) = (id.to_string(), self.context.to_string());
        Some(show(&TaskView {
            id: &id,
            context_id: &context,
            state: if told { task.state } else { TaskState::Working },
            since: task.since,
            error: task.error.as_deref().filter(|_| told),
            result: if told { &task.result } else { &Value::Null },
            partial: task.partial,
            asked: (&task.message_id, &task.text),
        }))
    }

    /// One page of tasks, newest first.
    pub(super) fn page(&self, paging: &Paging, whose: Option<&str>) -> Result<Value, RpcError> {
        let after = match &paging.after {
            None => None,
            Some(token) => {
                let fault = |_| RpcError::params("pageToken: it is none that was given here".into());
                Some(token.parse::<RunId>().map_err(fault)?)
            }
        };
        let fits = |task: &Task| {
            whose.is_none_or(|whose| task.row.principal == whose)
                && paging.state.is_none_or(|state| task.row.state == state)
        };
        let fitting = || self.all.iter().rev().filter(|(_, task)| fits(task)).map(|(id, _)| *id);
        let mut rest = fitting().skip_while(|id| after.is_some_and(|after| *id >= after)).peekable();
        let page: Vec<RunId> = rest.by_ref().take(paging.size).collect();
        let next = rest.peek().and(page.last()).map(RunId::to_string).unwrap_or_default();
        let tasks: Vec<Value> =
            page.iter().map(|id| self.json(*id, paging.history.or(Some(0)), paging.artifacts)).collect();
        let (size, total) = (tasks.len(), fitting().count());
        Ok(json!({ "tasks": tasks, "nextPageToken": next, "pageSize": size, "totalSize": total }))
    }

    /// It has ended.
    fn shelve(&mut self, id: RunId) {
        let Some(task) = self.all.get_mut(&id) else { return };
        task.bytes = task.size();
        self.bytes += task.bytes;
        self.ended.push_back(id);
    }

    /// Forgets the oldest that have ended, beyond what is kept; which these are.
    fn trim(&mut self) -> Vec<RunId> {
        let (most, bytes) = limits::TASKS;
        let mut forgotten = Vec::new();
        while self.ended.len() > most || self.bytes > bytes {
            let Some(oldest) = self.ended.pop_front() else { break };
            if let Some(task) = self.all.remove(&oldest) {
                self.bytes -= task.bytes;
                self.unkept.remove(&oldest);
                self.untold.remove(&oldest);
                forgotten.push(oldest);
            }
        }
        forgotten
    }
}

impl Core {
    /// A message becomes a prompt.
    pub(super) fn begin_task(
        &mut self,
        principal: &Principal,
        message_id: &str,
        text: &str,
        out: &mut Actions,
    ) -> RunId {
        let id = RunId::mint(self.now.wall, &mut self.rng);
        // Ids of one millisecond are in no order; the table is to be.
        let last = self.surface.tasks.all.keys().next_back().copied();
        let id = last.map_or(id, |last| id.max(last.next()));
        let prompt = self.next_prompt();
        let row = TaskRow {
            id,
            principal: principal.id.clone(),
            prompt,
            message_id: message_id.to_owned(),
            text: text.to_owned(),
            state: TaskState::Submitted,
            since: self.now.wall,
            error: None,
            result: Value::Null,
            partial: false,
        };
        self.surface.tasks.all.insert(id, Task { row, bytes: 0 });
        self.surface.tasks.by_prompt.insert(prompt, id);
        self.task_changed(id);
        self.prompt_submitted(text.to_owned(), out);
        id
    }

    /// The conversation has its name from the first chance there is.
    pub(in crate::supervisor) fn name_conversation(&mut self) {
        if self.config.control.is_some() {
            self.surface.tasks.context = RunId::mint(self.now.wall, &mut self.rng);
        }
    }

    /// A prompt's turn has begun.
    pub(in crate::supervisor) fn task_begins(&mut self, prompt: u64, out: &mut Actions) {
        let Some(id) = self.surface.tasks.by_prompt.get(&prompt).copied() else { return };
        let Some(task) = self.surface.tasks.all.get_mut(&id) else { return };
        if task.row.state == TaskState::Submitted {
            task.row.state = TaskState::Working;
            task.row.since = self.now.wall;
            self.task_changed(id);
            self.tell_task(id, out);
        }
    }

    /// A prompt has its answer, and so has its task.
    pub(in crate::supervisor) fn task_ends(&mut self, prompt: u64, result: &ResultObject, out: &mut Actions) {
        let Some(id) = self.surface.tasks.by_prompt.remove(&prompt) else { return };
        let Some(task) = self.surface.tasks.all.get_mut(&id) else { return };
        task.row.state = TaskState::of(result.status);
        task.row.since = self.now.wall;
        task.row.error = result.error.clone();
        task.row.result = result.result.clone();
        task.row.partial = result.partial;
        self.surface.tasks.shelve(id);
        self.task_changed(id);
        if self.config.store.keeps && self.config.store.commit == Commit::Strict {
            self.surface.tasks.untold.insert(id);
        } else {
            self.tell_task(id, out);
        }
        let forgotten = self.surface.tasks.trim();
        self.throw_away(forgotten.into_iter().map(Write::NoTask));
    }

    /// It is saved with the conversation, whose prompt it is.
    fn task_changed(&mut self, id: RunId) {
        if self.config.store.keeps {
            self.surface.tasks.unkept.insert(id);
            self.mark(Shelf::Conversation);
        }
    }

    /// Tasks as they are to be saved.
    pub(in crate::supervisor) fn changed_tasks(&mut self) -> Vec<Write> {
        let tasks = &mut self.surface.tasks;
        let rows = std::mem::take(&mut tasks.unkept).into_iter().filter_map(|id| tasks.all.get(&id));
        rows.map(|task| Write::Task(Box::new(task.row.clone()))).collect()
    }

    /// These are durable as they were when the save began.
    pub(in crate::supervisor) fn tasks_kept(&mut self, tasks: &[RunId], out: &mut Actions) {
        for id in tasks {
            self.tell_begun(*id, out);
            // One that has ended since waits for the save that says so.
            if !self.surface.tasks.unkept.contains(id) && self.surface.tasks.untold.remove(id) {
                self.tell_task(*id, out);
            }
        }
    }

    /// A save with these failed, and the next one holds them again. Nobody waits for a store that fails.
    pub(in crate::supervisor) fn tasks_not_kept(&mut self, tasks: &[RunId], out: &mut Actions) {
        let known = tasks.iter().filter(|id| self.surface.tasks.all.contains_key(id));
        let known: Vec<RunId> = known.copied().collect();
        self.surface.tasks.unkept.extend(known.iter().copied());
        known.iter().for_each(|id| self.tell_begun(*id, out));
        self.tell_untold(out);
    }

    /// Ends that are told without waiting any longer.
    pub(in crate::supervisor) fn tell_untold(&mut self, out: &mut Actions) {
        while let Some(id) = self.surface.tasks.untold.pop_first() {
            self.tell_task(id, out);
        }
    }

    /// Whoever sent a message and does not wait for its turn is told its task.
    fn tell_begun(&mut self, id: RunId, out: &mut Actions) {
        let waits = self.surface.waits.iter().filter_map(|(conn, wait)| match wait {
            Wait::Begun { task, rpc, history } => (*task == id).then(|| (*conn, rpc.clone(), *history)),
            Wait::Call { .. } | Wait::Gone { .. } | Wait::Reload { .. } | Wait::Log { .. } => None,
            Wait::Task { .. } | Wait::Cancel { .. } | Wait::Stream { .. } => None,
        });
        for (conn, rpc, history) in waits.collect::<Vec<_>>() {
            let result = json!({ "task": self.surface.tasks.json(id, history, true) });
            let response = Response::of(200, "application/json", a2a::result(&rpc, &result));
            self.respond_and_go_on(conn, &response, out);
        }
    }

    /// The conversation's name to clients, where there can be any.
    pub(in crate::supervisor) fn conversation_name(&self) -> Option<RunId> {
        Some(self.surface.tasks.context).filter(|context| *context != RunId::NIL)
    }

    /// Tasks of an earlier life. One that had not ended goes on with its prompt, which the conversation has.
    pub(in crate::supervisor) fn restore_tasks(&mut self, context: Option<RunId>, rows: Vec<TaskRow>) {
        let tasks = &mut self.surface.tasks;
        tasks.context = context.unwrap_or(tasks.context);
        let (mut ended, mut changed) = (Vec::new(), Vec::new());
        for mut row in rows {
            let (id, prompt) = (row.id, row.prompt);
            if !row.state.is_final() && self.conversation.has_prompt(prompt) {
                tasks.by_prompt.insert(prompt, id);
            } else {
                if !row.state.is_final() {
                    row.state = TaskState::Failed;
                    changed.push(id);
                    row.error =
                        Some("the daemon died, and what it kept does not say what became of it".into());
                }
                ended.push((row.since, id));
            }
            tasks.all.insert(id, Task { row, bytes: 0 });
        }
        ended.sort_unstable();
        ended.into_iter().for_each(|(_, id)| tasks.shelve(id));
        let forgotten = tasks.trim();
        changed.into_iter().for_each(|id| self.task_changed(id));
        self.throw_away(forgotten.into_iter().map(Write::NoTask));
    }

    /// Tells everybody who follows a task where it is.
    fn tell_task(&mut self, id: RunId, out: &mut Actions) {
        let now = self.now.mono;
        let state = self.surface.tasks.state(id).unwrap_or(TaskState::Failed);
        let told = self.surface.tasks.with_view(id, |view| (artifact_update(view), status_update(view)));
        let Some((artifact, status)) = told else { return };
        let followers: Vec<(ConnId, Wait)> = self
            .surface
            .waits
            .iter()
            .filter(|(_, wait)| match wait {
                Wait::Task { task, .. } | Wait::Cancel { task, .. } => *task == id && state.is_final(),
                Wait::Stream { task, .. } => *task == id,
                Wait::Begun { .. } | Wait::Call { .. } | Wait::Gone { .. } => false,
                Wait::Reload { .. } | Wait::Log { .. } => false,
            })
            .map(|(conn, wait)| (*conn, wait.clone()))
            .collect();
        for (conn, wait) in followers {
            match wait {
                Wait::Stream { rpc, .. } => {
                    let Some(connection) = self.surface.connections.get_mut(&conn) else { continue };
                    for event in artifact.iter().filter(|_| state.is_final()).chain([&status]) {
                        connection.event(&a2a::result(&rpc, event), now, out);
                    }
                    if state.is_final() {
                        connection.end_stream(now, out);
                        self.surface.waits.remove(&conn);
                        self.serve_connection(conn, out);
                    }
                }
                Wait::Task { rpc, history, .. } => {
                    let result = json!({ "task": self.surface.tasks.json(id, history, true) });
                    let response = Response::of(200, "application/json", a2a::result(&rpc, &result));
                    self.respond_and_go_on(conn, &response, out);
                }
                Wait::Cancel { rpc, .. } => {
                    let body = if state == TaskState::Canceled {
                        a2a::result(&rpc, &self.surface.tasks.json(id, None, true))
                    } else {
                        // It ended by itself before the cancel reached it.
                        a2a::error(&rpc, &RpcError::not_cancelable(state))
                    };
                    let response = Response::of(200, "application/json", body);
                    self.respond_and_go_on(conn, &response, out);
                }
                Wait::Begun { .. } | Wait::Call { .. } | Wait::Gone { .. } => {}
                Wait::Reload { .. } | Wait::Log { .. } => {}
            }
        }
    }
}
