//! Who is called next: a bounded number of calls at once, a bounded queue, and turns among callers.
//!
//! Used by `serve`. Waiting calls are kept by caller, and callers take turns, so one who asks a hundred times waits
//! behind one who asks once. A full queue refuses at once, and no caller may fill more than half of it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The sizes of a queue.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Calls at once.
    pub running_max: usize,
    /// Calls that wait.
    pub waiting_max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    running: usize,
    waiting: usize,
    /// Callers in the order of their turns, each with at least one waiting call.
    turns: VecDeque<String>,
    calls: HashMap<String, VecDeque<oneshot::Sender<()>>>,
}

/// See the head of this file.
#[derive(Debug, Clone)]
pub struct Queue {
    sizes: Sizes,
    inner: Arc<Mutex<Inner>>,
}

/// The right to run one call; giving it up lets the next one in.
#[derive(Debug)]
pub struct Turn {
    queue: Queue,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl Queue {
    /// An empty queue.
    pub fn new(sizes: Sizes) -> Queue {
        Queue { sizes, inner: Arc::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn.
    pub async fn enter(&self, caller: &str) -> Result<Turn, Full> {
        let told = {
            let mut inner = self.inner();
            if inner.running < self.sizes.running_max && inner.waiting == 0 {
                inner.running += 1;
                return Ok(Turn { queue: self.clone() });
            }
            let mine = inner.calls.get(caller).map_or(0, VecDeque::len);
            if inner.waiting >= self.sizes.waiting_max || mine >= self.sizes.waiting_max.div_ceil(2) {
                return Err(Full);
            }
            let (tell, told) = oneshot::channel();
            if mine == 0 {
                inner.turns.push_back(caller.to_owned());
            }
            inner.calls.entry(caller.to_owned()).or_default().push_back(tell);
            inner.waiting += 1;
            told
        };
        // The sender is dropped without a word only with the queue itself.
        told.await.map_err(|_| Full)?;
        Ok(Turn { queue: self.clone() })
    }

    /// How many run and how many wait.
    pub fn lengths(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.running, inner.waiting)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut inner = self.queue.inner();
        // The turn passes on to the next who still waits; one who has gone away is skipped.
        while let Some(caller) = inner.turns.pop_front() {
            let calls = inner.calls.entry(caller.clone()).or_default();
            let next = calls.pop_front();
            if calls.is_empty() {
                inner.calls.remove(&caller);
            } else {
                inner.turns.push_back(caller);
            }
            inner.waiting -= usize::from(next.is_some());
            if next.is_some_and(|tell| tell.send(()).is_ok()) {
                return;
            }
        }
        inner.running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn callers_take_turns_and_a_full_queue_refuses() {
        run(async {
            let queue = Queue::new(Sizes { running_max: 1, waiting_max: 4 });
            let first = queue.enter("a").await.unwrap();
            let order = Arc::new(Mutex::new(Vec::new()));
            let wait = |caller: &'static str| {
                let (queue, order) = (queue.clone(), Arc::clone(&order));
                async move {
                    let turn = queue.enter(caller).await;
                    if turn.is_ok() {
                        order.lock().unwrap().push(caller);
                    }
                    turn.map(drop)
                }
            };
            let release = async {
                // Polled last: everybody has asked by now.
                assert_eq!(queue.lengths(), (1, 3));
                drop(first);
            };
            let results = tokio::join!(wait("a"), wait("a"), wait("a"), wait("b"), release);
            // No caller fills more than half of the queue.
            assert_eq!(results.2, Err(Full));
            assert_eq!(*order.lock().unwrap(), ["a", "b", "a"]);
            assert_eq!(queue.lengths(), (0, 0));
        });
    }

    #[test]
    fn one_who_has_gone_away_is_skipped() {
        run(async {
            let queue = Queue::new(Sizes { running_max: 1, waiting_max: 4 });
            let first = queue.enter("a").await.unwrap();
            let mut waits = Box::pin(queue.enter("c"));
            assert!(futures_poll(&mut waits).is_none());
            drop(waits);
            drop(first);
            assert_eq!(queue.lengths(), (0, 0));
            assert!(queue.enter("d").await.is_ok());
        });
    }

    fn futures_poll<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }
}
