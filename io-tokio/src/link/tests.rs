use super::*;
use serde_json::json;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

async fn once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    // So that tokio's budget of one poll of this task is no reason to be pending.
    tokio::task::yield_now().await;
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// The next command, in a word.
fn word(inbox: &mut Inbox) -> String {
    match inbox.commands.try_recv() {
        Ok(Command::Call { call, tool, .. }) => format!("{tool} {call}"),
        Ok(Command::HangUp { call }) => format!("hang up {call}"),
        Ok(Command::Prompt { prompt, .. }) => format!("prompt {prompt}"),
        Ok(Command::TakeBack { prompt }) => format!("take back {prompt}"),
        Ok(Command::Drain) => "drain".to_owned(),
        Ok(Command::Stop) => "stop".to_owned(),
        Err(none) => none.to_string(),
    }
}

#[tokio::test]
async fn who_goes_away_hangs_up_and_who_is_answered_does_not() {
    let (link, mut inbox) = link();
    {
        let mut call = pin!(link.call("a", json!({})));
        let mut prompt = pin!(link.prompt("x".into()));
        assert!(once(call.as_mut()).await.is_pending());
        assert!(once(prompt.as_mut()).await.is_pending());
        assert_eq!([word(&mut inbox), word(&mut inbox)], ["a 1", "prompt 1"]);
    }
    let mut gone = [word(&mut inbox), word(&mut inbox)];
    gone.sort();
    assert_eq!(gone, ["hang up 1", "take back 1"]);
    {
        let mut call = pin!(link.call("b", json!({})));
        assert!(once(call.as_mut()).await.is_pending());
        let Ok(Command::Call { call: 2, reply, .. }) = inbox.commands.try_recv() else { panic!() };
        reply.send(Ok(json!(7)));
        assert_eq!(call.await, Ok(Ok(json!(7))));
    }
    assert_eq!(inbox.room.available_permits(), OPEN, "what is over takes no room");
    link.drain();
    link.drain();
    link.stop();
    link.stop();
    let rest = [word(&mut inbox), word(&mut inbox), word(&mut inbox)];
    assert_eq!(rest, ["drain", "stop", "receiving on an empty channel"]);
}

#[tokio::test]
async fn one_more_than_may_be_open_waits_for_room() {
    let (link, mut inbox) = link();
    let mut open = Vec::new();
    for _ in 0..OPEN {
        let mut call = Box::pin(link.call("a", json!({})));
        assert!(once(call.as_mut()).await.is_pending());
        open.push(call);
    }
    let mut one_more = pin!(link.call("more", json!({})));
    assert!(once(one_more.as_mut()).await.is_pending());
    let replies: Vec<_> = std::iter::from_fn(|| inbox.commands.try_recv().ok()).collect();
    assert_eq!(replies.len(), OPEN, "it is not among them");
    drop(replies);
    assert!(once(one_more.as_mut()).await.is_pending());
    assert_eq!(word(&mut inbox), format!("more {}", OPEN + 1));
}

#[tokio::test]
async fn when_the_driver_has_gone_everybody_is_told() {
    let (link, mut inbox) = link();
    let mut waits = pin!(link.call("a", json!({})));
    assert!(once(waits.as_mut()).await.is_pending());
    let mut ended = pin!(link.ended());
    assert!(once(ended.as_mut()).await.is_pending());
    assert_eq!(word(&mut inbox), "a 1");
    drop(inbox);
    assert_eq!(waits.await, Err(CallError::Ended));
    assert_eq!(link.call("b", json!({})).await, Err(CallError::Ended));
    assert_eq!(link.prompt("x".into()).await, Err(CallError::Ended));
    ended.await;
    link.drain();
    link.stop();
}
