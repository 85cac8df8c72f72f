#include "api/cntr.h"

#include "api/wait.h"

namespace cluster::api {
namespace {

/// If several threads wait on one counter, all except the first check the counter at this interval.
constexpr std::chrono::milliseconds kSharedWaitInterval{1};

/// Implements fi_cntr_add, fi_cntr_set, fi_cntr_adderr and fi_cntr_seterr.
template <void (protocol::Counter::*change)(std::uint64_t)>
int change_value(fid_cntr* cntr, std::uint64_t value) noexcept {
  Cntr& object = object_of<Cntr>(cntr);
  if constexpr (change == &protocol::Counter::set) object.know_value(value);
  if constexpr (change == &protocol::Counter::set_errors) object.know_errors(value);
  (object.counter().*change)(value);
  DeferredWork& work = object.domain().deferred_work();
  if (work.due()) work.run(true);
  return 0;
}

constinit fi_ops cntr_fid_ops = fid_ops({.close = close_object<Cntr>, .control = control_wait<Cntr>});

constinit fi_ops_cntr cntr_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = Method<&Cntr::value>::entry,
    .readerr = Method<&Cntr::errors>::entry,
    .add = change_value<&protocol::Counter::add>,
    .set = change_value<&protocol::Counter::set>,
    .wait = Method<&Cntr::wait>::sleeping_entry,
    .adderr = change_value<&protocol::Counter::add_errors>,
    .seterr = change_value<&protocol::Counter::set_errors>,
};

}  // namespace

Cntr::Cntr(Domain& domain, fi_wait_obj wait_object, void* context)
    : fid_cntr{{FI_CLASS_CNTR, context, &cntr_fid_ops}, &cntr_ops},
      progress_(domain.platform(), wait_object),
      backoff_(domain.platform()),
      domain_(domain) {}

int Cntr::open(Domain& domain, const fi_cntr_attr* attributes, fid_cntr** handle, void* context) {
  const fi_cntr_attr& wanted = attributes_at(attributes);
  if (number_of(wanted.events) != FI_CNTR_EVENTS_COMP || wanted.flags != 0) return -FI_ENOSYS;
  if (const int error = check_wait_object(wanted.wait_obj, wanted.wait_set)) return error;
  std::unique_ptr<Cntr> cntr(new Cntr(domain, wanted.wait_obj, context));
  if (const int error = cntr->membership_.join(cntr->fid, cntr->progress_, wanted.wait_set)) return error;
  *handle = cntr.release();
  return 0;
}

Cntr::~Cntr() {
  domain_->deferred_work().forget(*this);
  if (joins_work_) domain_->work_progress().remove_counter(progress_);
}

void Cntr::join_work() {
  if (!joins_work_.exchange(true)) domain_->work_progress().add_counter(progress_);
}

/// Makes progress before a read of the counter. A read of a counter cannot report an error. Therefore, if
/// memory runs out, this function returns without an error, and the next read tries again.
void Cntr::progress_endpoints() noexcept {
  guarded([&] {
    progress_.poll();
    return 0;
  });
}

std::uint64_t Cntr::record_read(std::uint64_t value, std::atomic<std::uint64_t>& last_read) {
  if (value == last_read.load(std::memory_order_relaxed)) {
    backoff_.record_idle([this] { progress_endpoints(); });
  } else {
    backoff_.record_event();
    last_read.store(value, std::memory_order_relaxed);
  }
  return value;
}

std::uint64_t Cntr::value() {
  progress_endpoints();
  return record_read(counter_.value(), value_read_);
}

std::uint64_t Cntr::errors() {
  progress_endpoints();
  return record_read(counter_.errors(), errors_read_);
}

int Cntr::wait(std::uint64_t threshold, int timeout) {
  const std::uint64_t errors = counter_.errors();
  const auto verdict = [&]() -> ssize_t {
    if (counter_.value() >= threshold) return 0;
    return counter_.errors() != errors ? -FI_EAVAIL : -FI_EAGAIN;
  };
  engine::Sleeper* claimed = nullptr;
  const ssize_t result = wait_until(
      progress_, timeout,
      [&]() -> ssize_t {
        const ssize_t now = verdict();
        if (now != -FI_EAGAIN) return now;
        progress_.poll();
        return verdict();
      },
      [&](engine::Sleeper& sleep_on) {
        // A wake-up of the sleeper reaches only one thread. So only the thread that has claimed the sleeper
        // arms it. Other threads check the counter at intervals.
        if (claimed == nullptr && sleep_on.claim()) claimed = &sleep_on;
        if (claimed == nullptr) return kSharedWaitInterval;
        counter_.wake_at_next(sleep_on);
        const bool ready = verdict() == -FI_EAGAIN && progress_.arm() && verdict() == -FI_EAGAIN;
        return ready ? kForever : 0ms;
      });
  if (claimed != nullptr) claimed->release();
  return result == -FI_EAGAIN ? -FI_ETIMEDOUT : static_cast<int>(result);
}

int Cntr::arm() {
  if (progress_.wait_object() == FI_WAIT_NONE) return -FI_EINVAL;
  engine::Sleeper* const sleep_on = progress_.sleeper();
  if (sleep_on == nullptr) return -FI_EAGAIN;
  counter_.wake_at_next(*sleep_on);
  return !unread() && progress_.arm() && !unread() ? 0 : -FI_EAGAIN;
}

bool Cntr::unread() const {
  return counter_.value() != value_read_.load(std::memory_order_relaxed) ||
         counter_.errors() != errors_read_.load(std::memory_order_relaxed);
}

bool Cntr::has_events() {
  progress_endpoints();
  return unread();
}

}  // namespace cluster::api
