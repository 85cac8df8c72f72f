// What every object of this room is made of. An object derives from libfabric's handle (fid_cq,
// fid_ep...), whose first member is a fid: so a handle is turned into its object by a cast and the
// application's context stays where libfabric and its hooks look for it.
//
// Invariants: no table and no entry of a table is null (most of libfabric's inline calls do not
// look); nothing thrown crosses into C; an object in use by another one cannot be closed.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <atomic>
#include <new>
#include <utility>

namespace cluster::api {

/// Stands for a function of any signature that answers -Error: fills the places of ops tables that
/// have nothing better to say.
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

/// Runs what may throw and answers in libfabric's way.
template <typename Call>
auto guarded(Call&& call) noexcept -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (...) {
    return -FI_EOTHER;
  }
}

/// The object behind a plain fid; Object::Handle is the libfabric handle it derives from.
template <typename Object>
Object& object_of(fid* plain) {
  return *static_cast<Object*>(reinterpret_cast<typename Object::Handle*>(plain));
}

/// How many other objects hold on to this one.
class RefCount {
 public:
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  void enter() { count_.fetch_add(1, std::memory_order_relaxed); }
  void leave() { count_.fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<int> count_{0};
};

/// A pointer that counts among the RefCount of what it points to; may be null.
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
