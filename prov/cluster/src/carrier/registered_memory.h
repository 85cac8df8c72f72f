// The memory that an application has registered in a domain (fi_mr_reg). Buffers carry the handle of their
// region (base/bytes.h: MemoryHandles). A transport whose device must know memory before it uses it is a
// MemoryRegistrar: it learns of each region and keeps what the device says about it, by handle.
//
// (region_offers.h offers regions to the peers of this node, which reach them without a handle.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/list.h"

namespace cluster::carrier {

/// One registered region. Its owner keeps it where it is while it is listed.
struct RegisteredRegion {
  void* handle = nullptr;  ///< no other listed region has it; a later region may have it again
  std::byte* base = nullptr;
  std::uint64_t length = 0;  ///< a region of all memory has ~0, from address 0 on; no device takes it
  std::uint64_t key = 0;     ///< by which peers name it, if they may access it
  std::uint64_t start = 0;   ///< the remote address of its first byte
  bool filled_here = false;  ///< receives and reads of this side may fill it
  bool readable = false;     ///< by peers
  bool writable = false;     ///< by peers
  Hook<RegisteredRegion> hook{};
};

/// Registers memory with a device. Any thread may make these calls, one at a time and without the engine lock.
/// So what they share with the rest of the transport needs a lock of its own.
class MemoryRegistrar {
 public:
  /// The region exists. A registrar may leave it out, for example for lack of memory: the transport then does
  /// not know the handle, and uses such memory in another way.
  virtual void registered(const RegisteredRegion& region) noexcept = 0;
  /// The region ends. When this call returns, the device has forgotten it, and the application may free the
  /// memory. The registrar is told of the end of each region, also of those that it left out.
  virtual void closed(const RegisteredRegion& region) noexcept = 0;

 protected:
  ~MemoryRegistrar() = default;
};

/// The regions of a domain and the registrars of its endpoints. It takes any thread.
class RegisteredMemory {
 public:
  void add(RegisteredRegion& region) {
    const std::lock_guard guard(lock_);
    regions_.push_back(region);
    for (MemoryRegistrar* const each : registrars_) each->registered(region);
  }
  void remove(RegisteredRegion& region) {
    const std::lock_guard guard(lock_);
    if (!regions_.linked(region)) return;
    regions_.remove(region);
    for (MemoryRegistrar* const each : registrars_) each->closed(region);
  }

  /// From now on the registrar learns of regions, at once of those that exist.
  void add(MemoryRegistrar& registrar) {
    const std::lock_guard guard(lock_);
    registrars_.push_back(&registrar);
    for (const RegisteredRegion* each = regions_.front(); each != nullptr; each = regions_.after(*each))
      registrar.registered(*each);
  }
  /// Once this returns, nobody calls the registrar any more.
  void remove(MemoryRegistrar& registrar) {
    const std::lock_guard guard(lock_);
    std::erase(registrars_, &registrar);
  }

 private:
  std::mutex lock_;
  List<RegisteredRegion, &RegisteredRegion::hook> regions_;
  std::vector<MemoryRegistrar*> registrars_;
};

}  // namespace cluster::carrier
