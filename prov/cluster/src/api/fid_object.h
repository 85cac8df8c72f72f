// The base of all objects of this component. An object derives from libfabric's handle (fid_cq, fid_ep, ...),
// whose first member is a fid. So a cast turns the handle into the object, and libfabric and its hooks find
// the application's context in its usual place.
//
// Invariants: no table and no entry of a table is null, because most inline functions of libfabric do not
// check them. No exception crosses into C. An object that another object holds cannot be closed.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "base/process_generation.h"
#include "base/status.h"

namespace cluster::api {

/// Returns the positive FI_E* of a status; 0 for Status::ok. Each cause has its own number where libfabric
/// has one. So an application can tell a dead peer from a peer that refuses it.
int fi_errno_of(Status status);
/// Returns the positive FI_E* for the exception that is being handled.
int fi_errno_of_exception() noexcept;

/// Converts to a function of any signature that returns -Error (or null). Such functions fill the entries of
/// ops tables that the provider does not implement.
template <int Error>
struct ErrorStub {
  template <typename Result, typename... Arguments>
  using Function = Result (*)(Arguments...);

  template <typename Result, typename... Arguments>
  constexpr operator Function<Result, Arguments...>() const {
    return [](Arguments...) -> Result {
      if constexpr (std::is_pointer_v<Result>)
        return nullptr;
      else
        return static_cast<Result>(-Error);
    };
  }
};
inline constexpr ErrorStub<FI_ENOSYS> kEnosys;
inline constexpr ErrorStub<FI_EOPBADSTATE> kEopbadstate;

/// An ops table in which every entry is `stub`. All of libfabric's tables are a size and function pointers.
template <typename Table, typename Stub>
constexpr Table stub_ops(Stub stub) {
  constexpr std::size_t kEntries = (sizeof(Table) - sizeof(std::size_t)) / sizeof(void (*)());
  return [stub]<std::size_t... entry>(std::index_sequence<entry...>) {
    return Table{sizeof(Table), (static_cast<void>(entry), stub)...};
  }
  (std::make_index_sequence<kEntries>());
}

/// The entries of fi_ops that objects of this provider implement.
struct FidOps {
  int (*close)(fid*);
  int (*bind)(fid*, fid*, std::uint64_t) = kEnosys;
  int (*control)(fid*, int, void*) = kEnosys;
  int (*ops_open)(fid*, const char*, std::uint64_t, void**, void*) = kEnosys;
};
constexpr fi_ops fid_ops(const FidOps& ops) {
  return {sizeof(fi_ops), ops.close, ops.bind, ops.control, ops.ops_open, kEnosys, kEnosys};
}

/// Calls a function that may throw, and turns an exception into a negative libfabric error.
template <typename Call>
auto guarded(Call&& call) noexcept -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    return -fi_errno_of_exception();
  }
}

/// Returns the object behind its libfabric handle (Object::Handle), or behind the fid of this handle.
template <typename Object>
Object& object_of(typename Object::Handle* handle) {
  return static_cast<Object&>(*handle);
}
template <typename Object>
Object& object_of(fid* plain) {
  return object_of<Object>(reinterpret_cast<typename Object::Handle*>(plain));
}

/// Method<&Object::method>::entry is the table entry that calls the method with its own arguments. Methods
/// that sleep catch exceptions themselves (api/wait.h): a thread may be cancelled in its sleep, and the entry
/// must not stop the unwinding.
template <auto method>
struct Method;
template <typename Object, typename Result, typename... Arguments, Result (Object::*method)(Arguments...)>
struct Method<method> {
  template <typename Handle>
  static Result entry(Handle* handle, Arguments... arguments) noexcept {
    return guarded([&] { return (object_of<Object>(handle).*method)(arguments...); });
  }
  template <typename Handle>
  static Result sleeping_entry(Handle* handle, Arguments... arguments) {
    return (object_of<Object>(handle).*method)(arguments...);
  }
};

/// The table entry of a parent that opens an Object: fi_domain, fi_cq_open and the like.
template <typename Object, typename Parent, typename Attributes>
int open_object(typename Parent::Handle* parent, Attributes* attributes, typename Object::Handle** handle,
                void* context) noexcept {
  if (handle == nullptr) return -FI_EINVAL;
  return guarded([&] { return Object::open(object_of<Parent>(parent), attributes, handle, context); });
}

/// fi_domain2, fi_endpoint2. No flags are supported.
template <typename Object, typename Parent>
int open_object2(typename Parent::Handle* parent, fi_info* info, typename Object::Handle** handle,
                 std::uint64_t flags, void* context) noexcept {
  return flags == 0 ? open_object<Object, Parent>(parent, info, handle, context) : -FI_ENOSYS;
}

/// Returns the attributes that an application passes; all zero if it passes none.
template <typename Attributes>
const Attributes& attributes_at(const Attributes* attributes) {
  static constexpr Attributes kNone{};
  return attributes != nullptr ? *attributes : kNone;
}

inline std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

/// The base of objects that others hold. It counts the holders.
class RefCounted {
 public:
  bool has_refs() const { return count_.load(std::memory_order_acquire) != 0; }
  void add_ref() { count_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() { count_.fetch_sub(1, std::memory_order_release); }
  /// Returns true in a forked child if the parent has opened the object.
  bool inherited() const { return process_ != process_generation.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> count_{0};
  const unsigned process_ = process_generation.load(std::memory_order_relaxed);
};

/// A pointer that counts itself as a holder of its object, which is RefCounted. It may be null.
template <typename Object>
class Ref {
 public:
  Ref() = default;
  explicit Ref(Object& object) { set(object); }
  ~Ref() { reset(); }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;

  void set(Object& object) {
    object.add_ref();
    reset();
    object_ = &object;
  }
  void reset() {
    if (object_ != nullptr) object_->drop_ref();
    object_ = nullptr;
  }
  explicit operator bool() const { return object_ != nullptr; }
  Object* get() const { return object_; }
  Object* operator->() const { return object_; }
  Object& operator*() const { return *object_; }

 private:
  Object* object_ = nullptr;
};

/// fi_close of an object that others may hold. A forked child only forgets its copy of the parent's object,
/// because everything behind the object still belongs to the parent.
template <typename Object>
int close_object(fid* plain) noexcept {
  Object& object = object_of<Object>(plain);
  if (object.inherited()) return 0;
  if (object.has_refs()) return -FI_EBUSY;
  delete &object;
  return 0;
}

/// A member of each object whose operations must fail in a child of fork(): operations return
/// -FI_EOPBADSTATE, and closing the object does nothing. The child has copies of the objects' memory. But
/// rings, registered memory and sessions belong to the parent, and the parent's threads do not run in the
/// child. The child exchanges the ops tables, so data operations need no check.
class InheritedFid {
 public:
  explicit InheritedFid(fid& object);
  ~InheritedFid();
  InheritedFid(const InheritedFid&) = delete;
  InheritedFid& operator=(const InheritedFid&) = delete;

 private:
  fid& object_;
};

/// Called around fork(). Between lock and unlock no object is opened or closed.
void lock_fids_to_inherit();
void unlock_fids_to_inherit();
/// Called in the child instead of unlock.
void disable_inherited_fids();

}  // namespace cluster::api
