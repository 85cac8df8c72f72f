// What every object of this component is made of. An object derives from libfabric's handle (fid_cq,
// fid_ep...), whose first member is a fid: a cast turns the handle into the object, and the application's
// context stays where libfabric and its hooks look for it.
//
// Invariants: no table and no entry of a table is null (most inline functions of libfabric do not check); no
// exception crosses into C; an object that another one holds cannot be closed.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <atomic>
#include <utility>

#include "api/errno_map.h"

namespace cluster::api {

/// Converts to a function of any signature that returns -Error: fills the entries of ops tables that are not
/// implemented.
template <int Error>
struct ErrorStub {
  template <typename Result, typename... Arguments>
  using Function = Result (*)(Arguments...);

  template <typename Result, typename... Arguments>
  constexpr operator Function<Result, Arguments...>() const {
    return [](Arguments...) -> Result { return static_cast<Result>(-Error); };
  }
};
inline constexpr ErrorStub<FI_ENOSYS> kEnosys;
inline constexpr ErrorStub<FI_EOPBADSTATE> kEopbadstate;

/// Calls what may throw; an exception becomes a negative libfabric error.
template <typename Call>
auto guarded(Call&& call) noexcept -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    return -fi_errno_of_exception();
  }
}

/// The object behind a plain fid; Object::Handle is the libfabric handle it derives from.
template <typename Object>
Object& object_of(fid* plain) {
  return *static_cast<Object*>(reinterpret_cast<typename Object::Handle*>(plain));
}

/// How many other objects hold this one.
class RefCount {
 public:
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  void enter() { count_.fetch_add(1, std::memory_order_relaxed); }
  void leave() { count_.fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<int> count_{0};
};

/// A pointer that counts in the RefCount of its object; may be null.
template <typename Object>
class Ref {
 public:
  Ref() = default;
  explicit Ref(Object& object) { set(object); }
  ~Ref() { reset(); }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;

  void set(Object& object) {
    object.ref_count().enter();
    reset();
    object_ = &object;
  }
  void reset() {
    if (object_ != nullptr) object_->ref_count().leave();
    object_ = nullptr;
  }
  explicit operator bool() const { return object_ != nullptr; }
  Object* get() const { return object_; }
  Object* operator->() const { return object_; }
  Object& operator*() const { return *object_; }

 private:
  Object* object_ = nullptr;
};

/// fi_close of an object that others may hold.
template <typename Object>
int close_object(fid* plain) noexcept {
  Object& object = object_of<Object>(plain);
  if (object.ref_count().any()) return -FI_EBUSY;
  delete &object;
  return 0;
}

}  // namespace cluster::api
