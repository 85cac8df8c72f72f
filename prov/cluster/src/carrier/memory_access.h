// Access to a peer's memory without its library. MemoryAccess reaches registered memory: a transport offers it for each of its
// peers, and performs it by loads and stores, system calls or hardware. An access is over when the call that submits it
// returns, or later; then the transport reports it to Messenger::rma(). CrossMemory reaches the buffers of large messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"

namespace cluster::carrier {

/// Memory at the peer: `address` counts from where the region was registered to begin.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::size_t length = 0;
};

/// Names a pending access: the caller hands it in with the access, and the transport hands it back when that is over. Opaque to
/// transports. It travels in two registers.
class AccessTicket {
 public:
  AccessTicket() = default;
  /// For an operation that has no request.
  AccessTicket(void* context, bool report, bool reads)
      : context_(context), bits_(std::uint64_t{report} << 1 | std::uint64_t{reads} << 2) {}
  /// For an operation that has waited in a queue.
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

/// What an access asks for. A transport that cannot promise it leaves the access to the peer's library (unsuited).
/// One word, since every short access hands it down.
class AccessTerms {
 public:
  AccessTerms() = default;
  AccessTerms(bool copied, bool after_sends, bool after_puts)
      : bits_(unsigned{copied} | unsigned{after_sends} << 1 | unsigned{after_puts} << 2) {}

  /// The caller may change the source of a put when the call returns.
  bool copied() const { return (bits_ & 1) != 0; }
  /// It takes effect behind all that has been posted to the peer's carrier.
  bool after_sends() const { return (bits_ & 2) != 0; }
  /// It takes effect behind all puts that are pending.
  bool after_puts() const { return (bits_ & 4) != 0; }

 private:
  unsigned bits_ = 0;
};

enum class Outcome : std::uint8_t {
  done,      ///< all bytes are in place
  denied,    ///< no region of the peer allows this access; nothing was copied
  unsuited,  ///< the peer's library has to serve it; some bytes may have been copied
  pending,   ///< the transport reports the end
};

/// The ranges are as long as what is copied from or to here. Spans are valid during the call only; the memory they name
/// stays valid until the access is over.
class MemoryAccess {
 public:
  /// `in_order`: a pending put takes effect before anything that is posted to the peer's carrier behind it.
  explicit MemoryAccess(bool in_order) : in_order_(in_order) {}
  virtual ~MemoryAccess() = default;

  bool in_order() const { return in_order_; }
  virtual Outcome put(const RemoteRange& to, const Gather& source, AccessTerms terms,
                      AccessTicket ticket) = 0;
  virtual Outcome get(const RemoteRange& from, const Scatter& target, AccessTerms terms,
                      AccessTicket ticket) = 0;
  /// Reports what is over by now, as far as can be seen.
  virtual void settle() {}
  /// The peer is lost. Reports every pending access: ok if it has taken effect, as far as can be seen, else with `status`.
  /// From now on no memory of this side is touched for them.
  virtual void end(Status) {}

 private:
  const bool in_order_;
};

/// The memory of a peer process on the same node, where the kernel lets this process copy from and to it (cross-memory
/// attach, CMA): large messages are then copied once, not twice through a ring (protocol/direct_copy.h).
class CrossMemory {
 public:
  virtual ~CrossMemory() = default;

  /// Copies `length` bytes from the peer's `address` to position `offset` of the concatenation of
  /// `slices`. False: not all of it was copied, and another attempt would fail, too.
  virtual bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                    std::size_t length) = 0;
  /// The same towards the peer.
  virtual bool write(std::uint64_t address, const Gather& source) = 0;
};

}  // namespace cluster::carrier
