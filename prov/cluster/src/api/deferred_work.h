// The operations of a domain that wait for a counter (fi_trigger(3)). A triggered operation is a call with
// FI_TRIGGER. The provider reports its outcome like that of any other call. Deferred work comes from
// FI_QUEUE_WORK. It may name a completion counter, which counts the outcome. The endpoint's completion queue
// gets an entry only if the work has the flag FI_COMPLETION, or fails.
//
// An operation waits in the queue of a counter. The queue is sorted by threshold, and by submission for equal
// thresholds. An operation is due when the counter has reached its threshold. Deferred work has begun when
// the engine has accepted it. Until then it can be canceled.
//
// A counter is often changed under the lock of an engine. The operation that waits for it may need the lock
// of another engine. So the change only makes the operation due. The thread that has changed the counter
// releases the first lock, and then begins the operation (AfterTurn). Only one thread at a time begins
// operations. Other threads leave their operations to this thread, so the operations begin in order. If an
// operation must wait, later operations of the same endpoint wait behind it. Operations of other endpoints do
// not wait.
//
// The mutex is the innermost lock: a thread that holds it waits for no other lock.
#pragma once

#include <rdma/fi_trigger.h>

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "api/call_copy.h"
#include "api/fid_object.h"
#include "base/environment.h"
#include "protocol/completion.h"

namespace cluster::api {

class Cntr;
class Domain;
class Endpoint;
class CounterQueue;       // the operations that wait for one counter
class DeferredOperation;  // one operation, with its condition

class DeferredWork final : public protocol::DeferredListener, public AfterTurn {
 public:
  DeferredWork();
  ~DeferredWork() override;

  /// Defers a call with FI_TRIGGER. Its context is a fi_triggered_context. Returns 0 or a negative error.
  int trigger(Endpoint& endpoint, CallCopy call);
  /// Implement FI_QUEUE_WORK, FI_CANCEL_WORK and FI_FLUSH_WORK. A flush without a counter drops all work that
  /// has not begun.
  int queue(Domain& domain, fi_deferred_work* work);
  int cancel(const fi_deferred_work* work);
  int flush(fid* counter);
  /// Among the waiting triggered operations of the endpoint, cancels one that has this context, and reports
  /// the cancellation. Returns false if there is none.
  bool cancel(const Endpoint& endpoint, const void* context);
  /// Drops the waiting operations of an endpoint that is about to close. Afterwards no operation begins on
  /// this endpoint.
  void leave(const Endpoint& endpoint);
  /// Drops the work that has begun on an endpoint whose engine no longer exists.
  void forget(const Endpoint& endpoint);
  /// Called before the counter closes. Drops the operations that wait for it.
  void forget(const Cntr& counter);

  void run(bool may_wait) noexcept override;
  void completed(const protocol::Completion& completion, protocol::CompletionQueue* queue) override;

 private:
  using Items = std::list<std::unique_ptr<DeferredOperation>>;
  friend DeferredOperation;
  friend CounterQueue;

  int submit(Cntr& counter, std::unique_ptr<DeferredOperation> item);
  template <typename Chosen>
  Items remove_waiting(Chosen&& chosen);

  std::mutex mutex_;
  std::map<const Cntr*, std::unique_ptr<CounterQueue>> waiting_;
  Items due_;
  Items put_off_;  ///< due operations that must wait until the round of run() ends
  Items begun_;
  DeferredOperation* beginning_ = nullptr;  ///< the item that a thread begins at this moment
  bool running_ = false;                    ///< a thread begins operations
  std::uint64_t rounds_ = 0;                ///< the number of the latest round of run()
  std::condition_variable idle_;
};

}  // namespace cluster::api
