// Access to a peer's memory without the peer's library. MemoryAccess reaches registered memory. A transport
// offers it for each of its peers, and performs it by loads and stores, system calls or hardware. An access
// is over when the call that submits it returns, or later; in the latter case the transport reports its end
// to Messenger::rma(). CrossMemory reaches the buffers of large messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"

namespace cluster::carrier {

/// A range of the peer's memory. `address` is a remote address: the registration of the region sets the
/// address of its first byte.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::size_t length = 0;
};

/// Names a pending access. The caller passes the ticket with the access, and the transport returns the ticket
/// when the access is over. Transports do not interpret it. It fits into two registers.
class AccessTicket {
 public:
  AccessTicket() = default;
  /// Makes the ticket of an operation that has no request.
  AccessTicket(void* context, bool report, bool reads)
      : context_(context), bits_(std::uint64_t{report} << 1 | std::uint64_t{reads} << 2) {}
  /// Makes the ticket of an operation that has waited in a queue, and so has a request: queued() is true.
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

/// What an access requires. A transport that cannot guarantee it leaves the access to the peer's library
/// (Outcome::unsuited). The terms are one word, because every short access passes them down.
class AccessTerms {
 public:
  AccessTerms() = default;
  AccessTerms(bool copied, bool after_sends, bool after_puts)
      : bits_(unsigned{copied} | unsigned{after_sends} << 1 | unsigned{after_puts} << 2) {}

  /// The caller may change the source of a put when the call returns.
  bool copied() const { return (bits_ & 1) != 0; }
  /// The access takes effect after everything that has been posted to the peer's carrier.
  bool after_sends() const { return (bits_ & 2) != 0; }
  /// The access takes effect after all pending puts.
  bool after_puts() const { return (bits_ & 4) != 0; }

 private:
  unsigned bits_ = 0;
};

enum class Outcome : std::uint8_t {
  done,      ///< all bytes are in place
  denied,    ///< no region of the peer allows this access; nothing was copied
  unsuited,  ///< the peer's library has to serve it; some bytes may have been copied
  pending,   ///< the access goes on; the transport reports its end
};

/// Performs accesses to one peer. The remote range is as long as the local data. The spans are valid during
/// the call only; the memory that they name stays valid until the access is over.
class MemoryAccess {
 public:
  /// `in_order`: a pending put takes effect before anything that is posted to the peer's carrier later.
  explicit MemoryAccess(bool in_order) : in_order_(in_order) {}
  virtual ~MemoryAccess() = default;

  bool in_order() const { return in_order_; }
  virtual Outcome put(const RemoteRange& to, const Gather& source, AccessTerms terms,
                      AccessTicket ticket) = 0;
  virtual Outcome get(const RemoteRange& from, const Scatter& target, AccessTerms terms,
                      AccessTicket ticket) = 0;
  /// Reports the accesses that are visibly over by now.
  virtual void settle() {}
  /// Ends all pending accesses, because the peer is lost. Reports each of them: as ok if it has visibly taken
  /// effect, otherwise with the given status. Afterwards the transport touches no local memory for them.
  virtual void end(Status) {}

 private:
  const bool in_order_;
};

/// The memory of a peer process on the same node, if the kernel lets this process copy from and to it
/// (cross-memory attach, CMA). Then a large message is copied once, instead of twice through a ring
/// (protocol/direct_copy.h).
class CrossMemory {
 public:
  virtual ~CrossMemory() = default;

  /// Copies `length` bytes from the peer's `address` to position `offset` of the concatenation of `slices`.
  /// Returns false if it could not copy all bytes; another attempt would fail, too.
  virtual bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                    std::size_t length) = 0;
  /// Copies in the other direction, to the peer.
  virtual bool write(std::uint64_t address, const Gather& source) = 0;
};

}  // namespace cluster::carrier
