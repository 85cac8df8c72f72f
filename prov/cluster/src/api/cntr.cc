#include "api/cntr.h"

#include "api/wait.h"

namespace cluster::api {
namespace {

/// Reading has no way to report trouble: a turn that fails is taken up by the next one.
protocol::Counter& moved(fid_cntr* cntr) noexcept {
  Cntr& object = static_cast<Cntr&>(*cntr);
  guarded([&] {
    object.progress().poll();
    return 0;
  });
  return object.counter();
}

std::uint64_t read(fid_cntr* cntr) noexcept { return moved(cntr).value(); }
std::uint64_t read_errors(fid_cntr* cntr) noexcept { return moved(cntr).errors(); }

protocol::Counter& counter_of(fid_cntr* cntr) { return static_cast<Cntr&>(*cntr).counter(); }

int add(fid_cntr* cntr, std::uint64_t value) noexcept {
  counter_of(cntr).add(value);
  return 0;
}
int set(fid_cntr* cntr, std::uint64_t value) noexcept {
  counter_of(cntr).set(value);
  return 0;
}
int add_errors(fid_cntr* cntr, std::uint64_t value) noexcept {
  counter_of(cntr).add_errors(value);
  return 0;
}
int set_errors(fid_cntr* cntr, std::uint64_t value) noexcept {
  counter_of(cntr).set_errors(value);
  return 0;
}

int wait(fid_cntr* cntr, std::uint64_t threshold, int timeout) noexcept {
  return guarded([&] { return static_cast<Cntr&>(*cntr).wait(threshold, timeout); });
}

int control(fid* cntr, int command, void* argument) noexcept {
  return control_wait(command, argument, object_of<Cntr>(cntr).wait_object());
}

constinit fi_ops cntr_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_object<Cntr>,
    .bind = kNotOffered,
    .control = control,
    .ops_open = kNotOffered,
    .tostr = kNotOffered,
    .ops_set = kNotOffered,
};

constinit fi_ops_cntr cntr_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = read,
    .readerr = read_errors,
    .add = add,
    .set = set,
    .wait = wait,
    .adderr = add_errors,
    .seterr = set_errors,
};

}  // namespace

Cntr::Cntr(Domain& domain, fi_wait_obj wait_object, void* context)
    : fid_cntr{{FI_CLASS_CNTR, context, &cntr_fid_ops}, &cntr_ops},
      domain_(domain),
      wait_object_(wait_object) {}

int Cntr::open(Domain& domain, const fi_cntr_attr* attributes, fid_cntr** handle, void* context) {
  if (handle == nullptr) return -FI_EINVAL;
  const fi_cntr_attr defaults{};
  const fi_cntr_attr& wanted = attributes != nullptr ? *attributes : defaults;
  if (wanted.events != FI_CNTR_EVENTS_COMP || wanted.flags != 0) return -FI_ENOSYS;
  if (const int error = check_wait_object(wanted.wait_obj)) return error;
  *handle = new Cntr(domain, wanted.wait_obj, context);
  return 0;
}

int Cntr::wait(std::uint64_t threshold, int timeout) {
  const std::uint64_t errors = counter_.errors();
  const ssize_t result = wait_until(domain_->assembly().clock(), timeout, [&]() -> ssize_t {
    if (counter_.value() >= threshold) return 0;
    progress_.poll();
    if (counter_.value() >= threshold) return 0;
    return counter_.errors() != errors ? -FI_EAVAIL : -FI_EAGAIN;
  });
  return result == -FI_EAGAIN ? -FI_ETIMEDOUT : static_cast<int>(result);
}

}  // namespace cluster::api
