// Interfaces for access to a peer's memory without the peer's library. MemoryAccess reads and writes
// registered memory. A transport can offer a MemoryAccess for each of its peers, and implements it with loads
// and stores, system calls or hardware. An access may end before its call returns, or later. If it ends
// later, the transport reports the end (RemoteAccess::over). CrossMemory reads and writes the buffers of
// large messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"

namespace cluster::carrier {

/// A range of the peer's memory. `address` is a remote address. The peer chose the remote address of the
/// region's first byte when it registered the region.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::size_t length = 0;
};

/// Identifies a pending access. The caller passes a ticket with the access, and the transport passes the
/// ticket back when it reports the end of the access. Transports do not interpret tickets. A ticket fits into
/// two registers.
class AccessTicket {
 public:
  AccessTicket() = default;
  /// Creates a ticket for an operation that has no request object.
  AccessTicket(void* context, bool report, bool reads)
      : context_(context), bits_(std::uint64_t{report} << 1 | std::uint64_t{reads} << 2) {}
  /// Creates a ticket for an operation that has waited in a queue and therefore has a request object.
  /// queued() returns true for this ticket.
  AccessTicket(std::uint32_t request, bool reads)
      : bits_(std::uint64_t{request} << 32 | 1 | std::uint64_t{reads} << 2) {}

  void* context() const { return context_; }
  std::uint32_t request() const { return static_cast<std::uint32_t>(bits_ >> 32); }
  bool queued() const { return (bits_ & 1) != 0; }
  bool report() const { return (bits_ & 2) != 0; }
  bool reads() const { return (bits_ & 4) != 0; }

 private:
  void* context_ = nullptr;
  std::uint64_t bits_ = 0;
};

/// The conditions that an access must fulfil. A transport that cannot guarantee them returns
/// Outcome::unsuited, and the peer's library performs the access. The terms are packed into one word, because
/// every short access passes them as an argument.
class AccessTerms {
 public:
  AccessTerms() = default;
  AccessTerms(bool copied, bool after_sends, bool after_puts)
      : bits_(unsigned{copied} | unsigned{after_sends} << 1 | unsigned{after_puts} << 2) {}

  /// Returns true if the caller may change the source of a put as soon as the call returns.
  bool copied() const { return (bits_ & 1) != 0; }
  /// Returns true if the access must take effect after all segments that were posted to the peer's carrier
  /// before the access.
  bool after_sends() const { return (bits_ & 2) != 0; }
  /// Returns true if the access must take effect after all pending puts.
  bool after_puts() const { return (bits_ & 4) != 0; }

 private:
  unsigned bits_ = 0;
};

enum class Outcome : std::uint8_t {
  done,      ///< all bytes are in place
  denied,    ///< no region of the peer allows this access; nothing was copied
  unsuited,  ///< the peer's library has to perform the access; some bytes may already be copied
  pending,   ///< the access is in progress; the transport reports its end later
};

/// Performs accesses to one peer's memory. The remote range must have the same length as the local data. The
/// spans in `source` and `target` need be valid only during the call, so an implementation must not keep
/// them. The memory to which they refer must stay valid until the access ends.
class MemoryAccess {
 public:
  /// `in_order`: true if a pending put takes effect before all segments that are posted to the peer's carrier
  /// after the put.
  explicit MemoryAccess(bool in_order) : in_order_(in_order) {}
  virtual ~MemoryAccess() = default;

  bool in_order() const { return in_order_; }
  virtual Outcome put(const RemoteRange& to, const Gather& source, AccessTerms terms,
                      AccessTicket ticket) = 0;
  virtual Outcome get(const RemoteRange& from, const Scatter& target, AccessTerms terms,
                      AccessTicket ticket) = 0;
  /// Checks the pending accesses and reports those that have ended.
  virtual void settle() {}
  /// Ends all pending accesses, because the peer is lost. Reports an access as ok if it has verifiably taken
  /// effect, otherwise with the given status. After this call, the transport reads and writes no local memory
  /// for these accesses.
  virtual void end(Status) {}

 private:
  const bool in_order_;
};

/// The memory of a peer process on the same node. The protocol gets this object only if the kernel lets this
/// process copy from and to that memory (cross-memory attach, CMA). With CMA, a large message is copied once
/// (protocol/direct_copy.h). Through a ring, the message would be copied twice.
class CrossMemory {
 public:
  virtual ~CrossMemory() = default;

  /// Copies `length` bytes from `address` in the peer's memory to position `offset` of the concatenation of
  /// `slices`. Returns false if not all bytes could be copied, or if the peer may have ended or closed before
  /// the copy. In each of these cases another attempt would fail as well.
  virtual bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                    std::size_t length) = 0;
  /// Copies `source` to `address` in the peer's memory. Returns false if not all bytes could be copied, or if
  /// the peer has ended.
  virtual bool write(std::uint64_t address, const Gather& source) = 0;
};

}  // namespace cluster::carrier
