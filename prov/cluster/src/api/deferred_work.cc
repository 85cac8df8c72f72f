#include "api/deferred_work.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/cntr.h"
#include "api/domain.h"
#include "api/endpoint.h"
#include "base/enumeration.h"

namespace cluster::api {
namespace {

using protocol::Completion;
using CallKind = CallCopy::Kind;

/// Flags that the operations of deferred work cannot have, because each operation must have exactly one
/// completion.
constexpr std::uint64_t kWorkFlagsUnsupported = FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD;

Completion::Kind completion_kind(CallKind kind) {
  switch (kind) {
    case CallKind::send: return Completion::Kind::send;
    case CallKind::receive: return Completion::Kind::receive;
    case CallKind::write: return Completion::Kind::write;
    case CallKind::read: return Completion::Kind::read;
    case CallKind::atomic: return Completion::Kind::atomic;
    case CallKind::fetch:
    case CallKind::compare: break;
  }
  return Completion::Kind::fetch;
}

/// Returns the status whose libfabric error is `error`, a positive number.
Status status_of(int error) {
  for (int number = 0; number <= static_cast<int>(Status::overrun); ++number) {
    const auto status = static_cast<Status>(number);
    if (fi_errno_of(status) == error) return status;
  }
  return Status::bad_address;
}

}  // namespace

/// An operation is due when its condition is met.
struct StartCondition {
  Cntr* counter;
  std::uint64_t threshold;
  bool counts_errors;  ///< the threshold applies to the sum of successes and errors

  bool met() const {
    const protocol::Counter& value = counter->counter();
    return value.value() + (counts_errors ? value.errors() : 0) >= threshold;
  }
};

class DeferredOperation {
 public:
  /// A triggered operation, or the operation of deferred work. `of_work`: null for a triggered operation.
  /// `counted`: the completion counter, or null.
  DeferredOperation(Endpoint& of, CallCopy copy, const StartCondition& when, const fi_deferred_work* of_work,
                    Cntr* counted)
      : endpoint(&of),
        call(std::move(copy)),
        condition(when),
        work(of_work),
        context(call->context()),
        report((call->flags() & FI_COMPLETION) != 0) {
    if (counted != nullptr) completion_counter.set(*counted);
    if (work != nullptr) call->set_context(this);
  }
  /// Deferred work that changes a counter.
  DeferredOperation(Cntr& changed, const fi_deferred_work& of_work, const StartCondition& when)
      : condition(when), work(&of_work), value(of_work.op.cntr->value) {
    target.set(changed);
    adds = of_work.op_type == FI_OP_CNTR_ADD;
  }

  /// Begins the operation. Returns 0 or a negative libfabric error.
  ssize_t begin() {
    if (endpoint != nullptr) return call->begin(*endpoint, work != nullptr ? deferred_calls : ordinary_calls);
    protocol::Counter& counter = target->counter();
    adds ? counter.add(value) : counter.set(value);
    return 0;
  }
  bool busy() const { return endpoint != nullptr && endpoint->engine()->busy(); }
  /// Reports that the operation failed to begin, or was canceled before it began.
  void fail(Status status) const {
    const Completion completion{.context = context,
                                .kind = completion_kind(call->kind()),
                                .tagged = call->tagged(),
                                .status = status};
    const BoundFids& bound = endpoint->bound();
    if (work == nullptr) return bound.report_failure(completion);
    if (protocol::CompletionQueue* const queue = bound.queue_for(completion.kind)) queue->push(completion);
    if (completion_counter) completion_counter->counter().count(status);
  }
  /// Returns true if the engine will call completed() for the operation. Otherwise run() destroys the item as
  /// soon as the operation has begun.
  bool listens() const { return endpoint != nullptr && work != nullptr; }

  Endpoint* endpoint = nullptr;  ///< null if the work changes a counter
  std::optional<CallCopy> call;
  StartCondition condition;
  const fi_deferred_work* work;
  void* context = nullptr;              ///< the application's context
  bool report = false;                  ///< success also goes to the completion queue
  bool over = false;                    ///< the operation was completed before begin() returned
  DeferredWork::Items::iterator place;  ///< the item's place in the list `begun_`
  bool adds = false;
  std::uint64_t value = 0;
  Ref<Cntr> target;              ///< the counter that the work changes
  Ref<Cntr> completion_counter;  ///< counts the outcome; may be null
};

/// The operations that wait for one counter.
class CounterQueue final : public protocol::CounterWatch {
 public:
  explicit CounterQueue(DeferredWork& owner) : owner_(owner) {}
  void counter_changed() noexcept override {
    const std::lock_guard guard(owner_.mutex_);
    for (auto next = items.begin(); next != items.end();) {
      const auto item = next++;
      if ((*item)->condition.met()) owner_.due_.splice(owner_.due_.end(), items, item);
    }
    owner_.set_due(!owner_.due_.empty());
  }

  DeferredWork::Items items;

 private:
  DeferredWork& owner_;
};

DeferredWork::DeferredWork() = default;
DeferredWork::~DeferredWork() = default;

int DeferredWork::trigger(Endpoint& endpoint, CallCopy call) {
  const auto* const context = static_cast<const fi_triggered_context*>(call.context());
  if (context == nullptr || !call.good() || (call.flags() & FI_INJECT)) return -FI_EINVAL;
  if (number_of(context->event_type) != FI_TRIGGER_THRESHOLD) return -FI_ENOSYS;
  const fi_trigger_threshold& threshold = context->trigger.threshold;
  if (threshold.cntr == nullptr || threshold.cntr->fid.fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  Cntr& counter = object_of<Cntr>(threshold.cntr);
  if (&counter.domain() != &endpoint.domain()) return -FI_EINVAL;
  const StartCondition condition{&counter, threshold.threshold, false};
  return submit(counter,
                std::make_unique<DeferredOperation>(endpoint, std::move(call), condition, nullptr, nullptr));
}

namespace {

/// The endpoint and the call of deferred work. Both are empty if the work names no operation, or one that the
/// provider does not know.
struct WorkCall {
  fid_ep* endpoint = nullptr;
  std::optional<CallCopy> call;
};

template <typename Op, typename... Arrays>
WorkCall work_call(const Op* op, CallKind kind, const Arrays&... arrays) {
  return {op->ep, std::optional<CallCopy>(std::in_place, kind, op->msg, arrays..., op->flags)};
}

WorkCall read_work(const fi_deferred_work& work) {
  const auto& op = work.op;
  if (op.msg == nullptr) return {};
  switch (number_of(work.op_type)) {
    case FI_OP_SEND: return work_call(op.msg, CallKind::send);
    case FI_OP_RECV: return work_call(op.msg, CallKind::receive);
    case FI_OP_TSEND: return work_call(op.tagged, CallKind::send);
    case FI_OP_TRECV: return work_call(op.tagged, CallKind::receive);
    case FI_OP_READ: return work_call(op.rma, CallKind::read);
    case FI_OP_WRITE: return work_call(op.rma, CallKind::write);
    case FI_OP_ATOMIC: return work_call(op.atomic, CallKind::atomic, AtomicArrays{});
    case FI_OP_FETCH_ATOMIC:
      return work_call(
          op.fetch_atomic, CallKind::fetch,
          AtomicArrays{op.fetch_atomic->fetch.msg_iov, op.fetch_atomic->fetch.iov_count, nullptr, 0});
    case FI_OP_COMPARE_ATOMIC:
      return work_call(
          op.compare_atomic, CallKind::compare,
          AtomicArrays{op.compare_atomic->fetch.msg_iov, op.compare_atomic->fetch.iov_count,
                       op.compare_atomic->compare.msg_iov, op.compare_atomic->compare.iov_count});
    default: return {};
  }
}

/// Returns the counter, or null if it does not belong to this domain.
Cntr* counter_in(const Domain& domain, fid_cntr* handle) {
  if (handle == nullptr || handle->fid.fclass != FI_CLASS_CNTR) return nullptr;
  Cntr& counter = object_of<Cntr>(handle);
  return &counter.domain() == &domain ? &counter : nullptr;
}

}  // namespace

int DeferredWork::queue(Domain& domain, fi_deferred_work* work) {
  if (work == nullptr) return -FI_EINVAL;
  Cntr* const counter = counter_in(domain, work->triggering_cntr);
  Cntr* const counted = counter_in(domain, work->completion_cntr);
  if (counter == nullptr || (work->completion_cntr != nullptr && counted == nullptr)) return -FI_EINVAL;
  const StartCondition condition{counter, work->threshold, true};
  if (number_of(work->op_type) == FI_OP_CNTR_SET || number_of(work->op_type) == FI_OP_CNTR_ADD) {
    Cntr* const target = work->op.cntr != nullptr ? counter_in(domain, work->op.cntr->cntr) : nullptr;
    if (target == nullptr || counted != nullptr) return -FI_EINVAL;
    target->join_work();
    return submit(*counter, std::make_unique<DeferredOperation>(*target, *work, condition));
  }
  WorkCall call = read_work(*work);
  if (!call.call) return work->op.msg == nullptr ? -FI_EINVAL : -FI_ENOSYS;
  if (call.endpoint == nullptr || call.endpoint->fid.fclass != FI_CLASS_EP || !call.call->good())
    return -FI_EINVAL;
  Endpoint& endpoint = endpoint_of(call.endpoint).origin();
  const std::uint64_t needed = FI_TRIGGER | call.call->capability();
  if (&endpoint.domain() != &domain) return -FI_EINVAL;
  if ((endpoint.options().caps() & needed) != needed) return -FI_ENOSYS;
  if (endpoint.engine() == nullptr) return -FI_EOPBADSTATE;
  const bool to_group = call.call->kind() == CallKind::send && engine::is_group(call.call->peer());
  if ((call.call->flags() & kWorkFlagsUnsupported) || to_group) return -FI_ENOSYS;
  if (counted != nullptr) counted->join_work();
  return submit(*counter, std::make_unique<DeferredOperation>(endpoint, std::move(*call.call), condition,
                                                              work, counted));
}

int DeferredWork::submit(Cntr& counter, std::unique_ptr<DeferredOperation> item) {
  CounterQueue* waiting = nullptr;
  {
    const std::lock_guard guard(mutex_);
    std::unique_ptr<CounterQueue>& slot = waiting_[&counter];
    if (slot == nullptr) slot = std::make_unique<CounterQueue>(*this);
    waiting = slot.get();
    const auto before = std::find_if(waiting->items.rbegin(), waiting->items.rend(), [&](const auto& other) {
      return other->condition.threshold <= item->condition.threshold;
    });
    waiting->items.insert(before.base(), std::move(item));
  }
  counter.counter().watch(*waiting);
  waiting->counter_changed();  // the condition may be met already
  if (due()) run(true);
  return 0;
}

/// Removes and returns the items for which chosen(item) is true and whose operations have not begun.
template <typename Chosen>
DeferredWork::Items DeferredWork::remove_waiting(Chosen&& chosen) {
  Items removed;
  const auto take = [&](Items& items) {
    for (auto next = items.begin(); next != items.end();) {
      const auto item = next++;
      if (chosen(**item)) removed.splice(removed.end(), items, item);
    }
  };
  for (auto& [counter, waiting] : waiting_) take(waiting->items);
  take(put_off_);
  take(due_);
  set_due(!due_.empty());
  return removed;
}

int DeferredWork::cancel(const fi_deferred_work* work) {
  if (work == nullptr) return -FI_EINVAL;
  const std::lock_guard guard(mutex_);
  return remove_waiting([&](const DeferredOperation& item) { return item.work == work; }).empty() ? -FI_ENOENT
                                                                                                  : 0;
}

int DeferredWork::flush(fid* counter) {
  if (counter != nullptr && counter->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  const Cntr* const only = counter != nullptr ? &object_of<Cntr>(counter) : nullptr;
  const std::lock_guard guard(mutex_);
  remove_waiting([&](const DeferredOperation& item) {
    return item.work != nullptr && (only == nullptr || item.condition.counter == only);
  });
  return 0;
}

bool DeferredWork::cancel(const Endpoint& endpoint, const void* context) {
  Items removed;
  {
    const std::lock_guard guard(mutex_);
    bool found = false;
    removed = remove_waiting([&](const DeferredOperation& item) {
      const bool wanted =
          !found && item.work == nullptr && item.endpoint == &endpoint && item.context == context;
      found |= wanted;
      return wanted;
    });
  }
  for (const auto& item : removed) item->fail(Status::canceled);
  return !removed.empty();
}

void DeferredWork::leave(const Endpoint& endpoint) {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return beginning_ == nullptr || beginning_->endpoint != &endpoint; });
  remove_waiting([&](const DeferredOperation& item) { return item.endpoint == &endpoint; });
}

void DeferredWork::forget(const Endpoint& endpoint) {
  const std::lock_guard guard(mutex_);
  std::erase_if(begun_, [&](const auto& item) { return item->endpoint == &endpoint; });
}

void DeferredWork::forget(const Cntr& counter) {
  const std::lock_guard guard(mutex_);
  remove_waiting([&](const DeferredOperation& item) { return item.condition.counter == &counter; });
  waiting_.erase(&counter);
}

/// Begins the operations that are due. If another thread already begins operations, returns at once. That
/// thread also begins the operations that become due meanwhile.
void DeferredWork::run(bool may_wait) noexcept {
  std::unique_lock lock(mutex_);
  if (std::exchange(running_, true)) return;
  const std::uint64_t round = ++rounds_;
  while (!due_.empty()) {
    Endpoint* const endpoint = due_.front()->endpoint;
    if (endpoint != nullptr && !may_wait && due_.front()->busy()) endpoint->put_off_work(round);
    if (endpoint != nullptr && endpoint->work_is_put_off(round)) {
      put_off_.splice(put_off_.end(), due_, due_.begin());
      continue;
    }
    begun_.splice(begun_.end(), due_, due_.begin());
    const auto place = std::prev(begun_.end());
    DeferredOperation& item = **place;
    item.place = place;
    beginning_ = &item;
    lock.unlock();
    const ssize_t result = item.begin();
    if (result < 0 && result != -FI_EAGAIN) item.fail(status_of(static_cast<int>(-result)));
    lock.lock();
    beginning_ = nullptr;
    if (result == -FI_EAGAIN) {  // there are no resources now; the next full turn tries again
      item.endpoint->put_off_work(round);
      put_off_.splice(put_off_.end(), begun_, place);
    } else if (result != 0 || item.over || !item.listens()) {
      begun_.erase(place);
    }
  }
  due_.splice(due_.begin(), put_off_);
  running_ = false;
  set_due(!due_.empty());
  lock.unlock();
  idle_.notify_all();
}

void DeferredWork::completed(const Completion& completion, protocol::CompletionQueue* queue) {
  DeferredOperation* const item = static_cast<DeferredOperation*>(completion.context);
  Completion report = completion;
  Ref<Cntr> counter;
  Items over;  // destroyed after the lock is released
  bool wanted = false;
  {
    const std::lock_guard guard(mutex_);
    report.context = item->context;
    wanted = item->report || completion.status != Status::ok;
    if (item->completion_counter) counter.set(*item->completion_counter);
    if (item == beginning_) {
      item->over = true;
    } else {
      over.splice(over.end(), begun_, item->place);
    }
  }
  if (wanted && queue != nullptr) queue->push(report);
  if (counter) counter->counter().count(completion.status);
}

}  // namespace cluster::api
