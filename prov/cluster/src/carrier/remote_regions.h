// Registered memory of peers on this node, reached without their help: what an initiator sees of a peer
// (RemoteRegions), how it gets to it (RegionConnector), and what a domain lets its peers see (RegionOffers).
// Interfaces: shm/ implements them over memory that processes share, the simulator over its own hosts.
#pragma once

#include <cstdint>
#include <memory>

#include "base/address.h"
#include "base/bytes.h"

namespace cluster::carrier {

/// The regions of one peer, as its initiator reaches them: each call is one access, over when it returns.
class RemoteRegions {
 public:
  enum class Outcome : std::uint8_t {
    done,      ///< all bytes are in place
    denied,    ///< no region of the peer allows this access; nothing was copied
    unsuited,  ///< the peer has to serve it; some bytes may have been copied
  };

  virtual ~RemoteRegions() = default;

  virtual Outcome write(std::uint64_t key, std::uint64_t address, const Gather& source) = 0;
  /// What write() would do now, as far as can be seen without copying.
  virtual Outcome judge_write(std::uint64_t key, std::uint64_t address, std::size_t length) = 0;
  /// True if some of the regions have been mapped into this process.
  bool maps_some() const { return maps_some_; }
  /// One piece of memory by stores, or loads, of this process, where the region is mapped here; nothing is
  /// cheaper. Else unsuited, and nothing has been done.
  virtual Outcome store(std::uint64_t, std::uint64_t, ConstBytes) { return Outcome::unsuited; }
  virtual Outcome load(std::uint64_t, std::uint64_t, Bytes) { return Outcome::unsuited; }
  /// Into position `offset` of the concatenation of `slices`.
  virtual Outcome read(std::uint64_t key, std::uint64_t address, std::span<const Bytes> slices,
                       std::size_t offset, std::size_t length) = 0;

 protected:
  bool maps_some_ = false;
};

class RegionConnector {
 public:
  virtual ~RegionConnector() = default;
  /// Null if the peer's regions are not in reach (now).
  virtual std::unique_ptr<RemoteRegions> connect(const SocketAddress& peer) = 0;
};

/// What peers may do with a region by themselves. An access that is not among it is served by this side's
/// library, or denied by it.
struct OfferedRegion {
  std::uint64_t base = 0;    ///< the virtual address of its first byte
  std::uint64_t start = 0;   ///< the remote address of that byte
  std::uint64_t length = 0;  ///< all memory: ~0 from address 0
  bool readable = false;
  bool writable = false;
  bool reads_served = false;   ///< peers may read it, through this side's library
  bool writes_served = false;  ///< the same of writes
};

/// The regions of one domain. Calls may be made by several threads at once.
class RegionOffers {
 public:
  virtual ~RegionOffers() = default;

  /// A key is offered once until it is withdrawn.
  virtual void offer(std::uint64_t key, const OfferedRegion& region) = 0;
  /// What is served changes; base, start and length are those of before.
  virtual void change(std::uint64_t key, const OfferedRegion& region) = 0;
  /// Waits until no peer reads or writes the region. False if one goes on for unreasonably long; then the
  /// region is closed to new accesses, and the call may be repeated.
  virtual bool withdraw(std::uint64_t key) = 0;

  /// From now on the peers of this endpoint reach the regions, until the handle is dropped, which waits for
  /// accesses under way. `reads_served`, `writes_served`: this endpoint's library has to see all of them.
  virtual std::shared_ptr<void> serve(const SocketAddress& endpoint, bool reads_served,
                                      bool writes_served) = 0;
};

}  // namespace cluster::carrier
