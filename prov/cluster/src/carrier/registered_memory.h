// The memory that an application has registered in a domain (fi_mr_reg). With a buffer, the application
// passes the handle of the buffer's region (base/bytes.h: MemoryHandles). Some devices must know memory
// before they can use it. The transport of such a device is a MemoryRegistrar. It learns of each region, and
// stores under the region's handle what the device returns.
//
// (Peers on this node reach regions without a handle, through region_offers.h.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/list.h"

namespace cluster::carrier {

/// One registered region. While RegisteredMemory lists the region, the owner must not move or destroy it.
struct RegisteredRegion {
  void* handle = nullptr;  ///< no other listed region has it; a later region may have it again
  std::byte* base = nullptr;
  std::uint64_t length = 0;  ///< ~0 for a region of all memory; no device accepts such a region
  std::uint64_t key = 0;     ///< peers that may access the region name it by this key
  std::uint64_t start = 0;   ///< the remote address of the region's first byte
  bool filled_here = false;  ///< receives and reads of this side may fill the region
  bool readable = false;     ///< peers may read the region
  bool writable = false;     ///< peers may write the region
  Hook<RegisteredRegion> hook{};
};

/// Registers memory with a device. The calls can come from any thread, one at a time and without the engine
/// lock. So data that the calls share with the rest of the transport needs a lock of its own.
class MemoryRegistrar {
 public:
  /// Called for each region, when the region or the registrar is added. A registrar may leave out a region,
  /// for example for lack of memory. In this case the transport does not know the region's handle, and
  /// reaches the memory in another way.
  virtual void registered(const RegisteredRegion& region) noexcept = 0;
  /// Called when a region is closed, even if the registrar has left it out. When this function returns, the
  /// device must have forgotten the region, because the application may free the memory now.
  virtual void closed(const RegisteredRegion& region) noexcept = 0;

 protected:
  ~MemoryRegistrar() = default;
};

/// The regions of a domain and the registrars of its endpoints. Any thread may call the methods of this
/// class.
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

  /// Adds a registrar. This call tells the registrar all existing regions, and each add() of a region tells
  /// it the new one.
  void add(MemoryRegistrar& registrar) {
    const std::lock_guard guard(lock_);
    registrars_.push_back(&registrar);
    for (const RegisteredRegion* each = regions_.front(); each != nullptr; each = regions_.after(*each))
      registrar.registered(*each);
  }
  /// Removes a registrar. After this call, nobody calls the registrar any more.
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
