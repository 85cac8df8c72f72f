// The base of all objects in api/. The class of an object derives from libfabric's handle type (fid_cq,
// fid_ep, ...), whose first member is a fid. So a cast converts the handle to the object, and libfabric and
// its hooking providers find the application's context in the fid.
//
// Invariants: No ops table and no entry of an ops table is null, because most inline functions of libfabric
// do not check for null. No exception reaches C code. An object cannot be closed while another object holds a
// reference to it.
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

/// Returns the positive FI_E* number for a status, or 0 for Status::ok. Different causes have different
/// numbers, as far as libfabric defines enough numbers. So an application can distinguish a dead peer from a
/// peer that refuses the application.
int fi_errno_of(Status status);
/// Returns the positive FI_E* number for the exception that is being handled.
int fi_errno_of_exception() noexcept;

/// An object that converts to a function pointer of any signature. The function returns -Error, or null if
/// its result is a pointer. In ops tables, such functions are the entries for calls that the provider does
/// not implement.
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

/// Returns an ops table in which every entry is `stub`. The function can do this for any table, because every
/// ops table of libfabric consists of its size and function pointers.
template <typename Table, typename Stub>
constexpr Table stub_ops(Stub stub) {
  constexpr std::size_t kEntries = (sizeof(Table) - sizeof(std::size_t)) / sizeof(void (*)());
  return [stub]<std::size_t... entry>(std::index_sequence<entry...>) {
    return Table{sizeof(Table), (static_cast<void>(entry), stub)...};
  }
  (std::make_index_sequence<kEntries>());
}

/// The entries of fi_ops that objects of this provider can implement.
struct FidOps {
  int (*close)(fid*);
  int (*bind)(fid*, fid*, std::uint64_t) = kEnosys;
  int (*control)(fid*, int, void*) = kEnosys;
  int (*ops_open)(fid*, const char*, std::uint64_t, void**, void*) = kEnosys;
};
constexpr fi_ops fid_ops(const FidOps& ops) {
  return {sizeof(fi_ops), ops.close, ops.bind, ops.control, ops.ops_open, kEnosys, kEnosys};
}

/// Calls a function that may throw. If it throws, returns a negative libfabric error.
template <typename Call>
auto guarded(Call&& call) noexcept -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    return -fi_errno_of_exception();
  }
}

/// Returns the object to which a libfabric handle (Object::Handle), or the fid in the handle, belongs.
template <typename Object>
Object& object_of(typename Object::Handle* handle) {
  return static_cast<Object&>(*handle);
}
template <typename Object>
Object& object_of(fid* plain) {
  return object_of<Object>(reinterpret_cast<typename Object::Handle*>(plain));
}

/// Method<&Object::method>::entry is a function for an ops table. It calls the method with the same
/// arguments. For methods that sleep there is sleeping_entry, which catches no exceptions. A thread may be
/// cancelled while it sleeps, and the entry must not stop the unwinding. Methods that sleep catch exceptions
/// themselves (api/wait.h).
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

/// The entry in the parent's ops table that opens an Object, for example for fi_domain and fi_cq_open.
template <typename Object, typename Parent, typename Attributes>
int open_object(typename Parent::Handle* parent, Attributes* attributes, typename Object::Handle** handle,
                void* context) noexcept {
  if (handle == nullptr) return -FI_EINVAL;
  return guarded([&] { return Object::open(object_of<Parent>(parent), attributes, handle, context); });
}

/// The entry for fi_domain2 and fi_endpoint2. No flags are supported.
template <typename Object, typename Parent>
int open_object2(typename Parent::Handle* parent, fi_info* info, typename Object::Handle** handle,
                 std::uint64_t flags, void* context) noexcept {
  return flags == 0 ? open_object<Object, Parent>(parent, info, handle, context) : -FI_ENOSYS;
}

/// Returns the attributes that the application has passed. If it has passed none (null), returns attributes
/// that are all zero.
template <typename Attributes>
const Attributes& attributes_at(const Attributes* attributes) {
  static constexpr Attributes kNone{};
  return attributes != nullptr ? *attributes : kNone;
}

inline std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

/// The base class of objects to which other objects hold references. It counts the references.
class RefCounted {
 public:
  bool has_refs() const { return count_.load(std::memory_order_acquire) != 0; }
  void add_ref() { count_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() { count_.fetch_sub(1, std::memory_order_release); }
  /// Returns true if this process is a forked child and its parent has opened the object.
  bool inherited() const { return process_ != process_generation.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> count_{0};
  const unsigned process_ = process_generation.load(std::memory_order_relaxed);
};

/// A counted reference to an object that derives from RefCounted. The reference may be null.
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

/// Implements fi_close of an object to which other objects may hold references. In a forked child, an object
/// of the parent is not destroyed, because its resources still belong to the parent.
template <typename Object>
int close_object(fid* plain) noexcept {
  Object& object = object_of<Object>(plain);
  if (object.inherited()) return 0;
  if (object.has_refs()) return -FI_EBUSY;
  delete &object;
  return 0;
}

/// A data member that makes its object unusable in a child of fork(). In the child, the object's operations
/// return -FI_EOPBADSTATE, and closing it does nothing. The child has a copy of the object's memory. But
/// rings, registered memory and sessions belong to the parent, and the parent's threads do not run in the
/// child. In the child, tables of functions that fail replace the object's ops tables, so data operations
/// need no check.
class InheritedFid {
 public:
  explicit InheritedFid(fid& object);
  ~InheritedFid();
  InheritedFid(const InheritedFid&) = delete;
  InheritedFid& operator=(const InheritedFid&) = delete;

 private:
  fid& object_;
};

/// Called before and after fork() in the parent. Between these calls, no object with an InheritedFid can be
/// opened or closed.
void lock_fids_to_inherit();
void unlock_fids_to_inherit();
/// Called in the child instead of unlock_fids_to_inherit().
void disable_inherited_fids();

}  // namespace cluster::api
