//! A2A's methods.

use super::super::Core;
use super::{Wait, routes};
use crate::a2a::{self, Content, Incoming, Method, Paging, Rpc, RpcError, TaskQuery, TaskState};
use crate::action::Actions;
use crate::config::Principal;
use crate::http::Response;
use crate::id::{ConnId, RunId};
use serde_json::{Value, json};

impl Core {
    /// One call. Answered here, or by what comes later.
    pub(super) fn call(
        &mut self,
        conn: ConnId,
        principal: &Principal,
        rpc: &Rpc,
        out: &mut Actions,
    ) -> Result<(), RpcError> {
        match rpc.method {
            Method::SendMessage => self.send_message(conn, principal, rpc, false, out),
            Method::SendStreamingMessage => self.send_message(conn, principal, rpc, true, out),
            Method::GetTask => {
                let query = TaskQuery::read(&rpc.params)?;
                let task = self.own_task(principal, &query.id)?;
                let result = self.surface.tasks.json(task, query.history, true);
                self.answer_call(conn, &rpc.id, &result, out);
                Ok(())
            }
            Method::ListTasks => {
                let result = self.list_tasks(principal, &Paging::read(&rpc.params)?)?;
                self.answer_call(conn, &rpc.id, &result, out);
                Ok(())
            }
            Method::CancelTask => self.cancel_task(conn, principal, rpc, out),
            Method::SubscribeToTask => {
                let query = TaskQuery::read(&rpc.params)?;
                let task = self.own_task(principal, &query.id)?;
                if let Some(state) = self.surface.tasks.state(task).filter(|state| state.is_final()) {
                    let why = format!("the task has ended as {}; GetTask has what it gave", state.name());
                    return Err(RpcError::unsupported(why));
                }
                self.stream(conn, task, &rpc.id, out);
                Ok(())
            }
        }
    }

    fn send_message(
        &mut self,
        conn: ConnId,
        principal: &Principal,
        rpc: &Rpc,
        streaming: bool,
        out: &mut Actions,
    ) -> Result<(), RpcError> {
        let message = Incoming::read(&rpc.params)?;
        let context = self.context();
        if let Some(other) = message.context_id.as_ref().filter(|id| **id != context) {
            let seen = crate::json::preview(other, crate::limits::PREVIEW_BYTES);
            let why =
                format!("contextId: there is one conversation here, {context}, and not {seen}; leave it out");
            return Err(RpcError::params(why));
        }
        let text = match &message.content {
            Content::Text(text) => text,
            Content::Op(..) if !routes::commands(principal) => {
                let why = format!("{} has the role user; commands are for the role operator", principal.id);
                return Err(RpcError::forbidden(why));
            }
            Content::Op(..) if streaming => {
                return Err(RpcError::unsupported("commands are answered by SendMessage".into()));
            }
            Content::Op(op, args) => {
                self.op(conn, &rpc.id, op, args, out);
                return Ok(());
            }
        };
        if let Some(id) = &message.task_id {
            let task = self.own_task(principal, id)?;
            let state = self.surface.tasks.state(task).unwrap_or(TaskState::Failed);
            let why = format!(
                "a task is one turn, and this one is {}; send without taskId for the next turn",
                state.name()
            );
            return Err(RpcError::unsupported(why));
        }
        let known = self.surface.tasks.sent_before(&principal.id, &message.message_id);
        if known.is_none()
            && let Some(error) = self.store_owes()
        {
            return Err(RpcError::unavailable(format!(
                "the store fails, so that this message would be forgotten: {error}; nothing was begun, send it again later"
            )));
        }
        let task = known.unwrap_or_else(|| self.begin_task(principal, &message.message_id, text, out));
        let history = message.history;
        if streaming {
            self.stream(conn, task, &rpc.id, out);
        } else if known.is_none() && message.at_once && self.config.store.keeps {
            // A client that was told of a task hears of it after a crash too.
            let rpc = rpc.id.clone();
            self.surface.waits.insert(conn, Wait::Begun { task, rpc, history });
        } else if message.at_once || self.surface.tasks.state(task).is_none_or(TaskState::is_final) {
            let result = json!({ "task": self.surface.tasks.json(task, history, true) });
            self.answer_call(conn, &rpc.id, &result, out);
        } else {
            let rpc = rpc.id.clone();
            self.surface.waits.insert(conn, Wait::Task { task, rpc, history });
        }
        Ok(())
    }

    fn cancel_task(
        &mut self,
        conn: ConnId,
        principal: &Principal,
        rpc: &Rpc,
        out: &mut Actions,
    ) -> Result<(), RpcError> {
        let query = TaskQuery::read(&rpc.params)?;
        let task = self.own_task(principal, &query.id)?;
        match self.surface.tasks.state(task) {
            Some(state) if state.is_final() => return Err(RpcError::not_cancelable(state)),
            Some(_) | None => {}
        }
        self.surface.waits.insert(conn, Wait::Cancel { task, rpc: rpc.id.clone() });
        if let Some(prompt) = self.surface.tasks.prompt(task) {
            self.turn_cancelled(prompt, &format!("by {}", principal.id), out);
        }
        Ok(())
    }

    fn list_tasks(&self, principal: &Principal, paging: &Paging) -> Result<Value, RpcError> {
        let context = self.context();
        if paging.context_id.as_ref().is_some_and(|id| *id != context) {
            return Ok(json!({ "tasks": [], "nextPageToken": "", "pageSize": paging.size, "totalSize": 0 }));
        }
        let whose = (!routes::commands(principal)).then_some(principal.id.as_str());
        self.surface.tasks.page(paging, whose)
    }

    /// The task of this name, if this principal may see it: another's reads exactly as an unknown one.
    fn own_task(&self, principal: &Principal, id: &str) -> Result<RunId, RpcError> {
        let task = id.parse::<RunId>().ok().filter(|task| {
            let whose = self.surface.tasks.principal(*task);
            whose.is_some_and(|whose| routes::commands(principal) || whose == principal.id)
        });
        task.ok_or_else(|| RpcError::no_task(id))
    }

    /// Tells a connection a task from where it stands.
    fn stream(&mut self, conn: ConnId, task: RunId, rpc: &Value, out: &mut Actions) {
        let now = self.now.mono;
        let first = json!({ "task": self.surface.tasks.json(task, None, true) });
        let first = a2a::result(rpc, &first);
        let over = self.surface.tasks.state(task).is_none_or(TaskState::is_final);
        if let Some(connection) = self.surface.connections.get_mut(&conn) {
            self.surface.metrics.count(crate::metrics::Counter::Answers, &["200"]);
            connection.begin_stream(now, out);
            connection.event(&first, now, out);
            if over {
                connection.end_stream(now, out);
            } else {
                self.surface.waits.insert(conn, Wait::Stream { task, rpc: rpc.clone() });
            }
        }
    }

    /// Answers a call with its result.
    pub(super) fn answer_call(&mut self, conn: ConnId, id: &Value, result: &Value, out: &mut Actions) {
        let response = Response::of(200, "application/json", a2a::result(id, result));
        self.respond(conn, &response, out);
    }

    /// The name of the one conversation.
    pub(super) fn context(&self) -> String {
        self.surface.tasks.context().to_string()
    }
}
