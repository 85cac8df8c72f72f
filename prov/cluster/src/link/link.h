// A link carries frames to other nodes and may lose, duplicate, reorder and damage them; reliability/ repairs
// that. It is called per burst, never per frame, and does not look into frames. No component above links
// knows about IP or Ethernet headers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/status.h"
#include "base/units.h"
#include "link/thinning.h"
#include "wire/frame.h"

namespace cluster::link {

/// How to reach a peer, as far as a link knows. The caller keeps it and hands it back; it learns a better one
/// (with the peer's hardware address) from frames that turned out to be authentic.
struct Path {
  SocketAddress to;
  std::array<std::byte, 6> mac{};
  bool mac_known = false;
  std::uint8_t link = 0;   ///< which of this side's links, where there are several (multipath/link_bundle.h)
  bool ethertype = false;  ///< under the provider's own EtherType, where the link has that
  /// Timeouts in a row since the peer was last heard, counted up to a limit: its host may have another hardware address now.
  std::uint8_t doubts = 0;

  bool same_mac(const Path& other) const {
    return std::memcmp(mac.data(), other.mac.data(), sizeof mac) == 0;
  }
};

/// The address alone, without the hardware address: a frame that any host could have written does not decide
/// where answers go; the kernel's routes and neighbour table do.
inline Path without_mac(const Path& path) { return {path.to, {}, false, path.link}; }

/// The same path over IP.
inline Path ip_path(Path path) {
  path.ethertype = false;
  return path;
}

inline constexpr std::size_t kPiecesMax = 12;
inline constexpr std::size_t kEthertypeFrameMax = 1280;  ///< bytes; larger frames gain nothing from it
inline constexpr std::size_t kBurstMax = 44;             ///< of 1500 bytes: the largest super-frame

/// One frame to send: `count` pieces in a row, `size` bytes in all.
struct OutFrame {
  const Path* path = nullptr;
  std::size_t count = 0;
  std::size_t size = 0;
  union {  // only those in use are ever written
    std::array<ConstBytes, kPiecesMax> pieces;
  };

  OutFrame() {}
  void add(ConstBytes piece) {
    if (piece.empty()) return;
    pieces[count++] = piece;
    size += piece.size();
  }
};

/// The frames of one call of a link, built in place. They are some 9 KB, too many to lie on the stack of a thread that the
/// application has made, or to be cleared for every call: each sender of bursts owns one.
class OutBurst {
 public:
  void clear() { count_ = 0; }
  /// A new empty frame behind the others; at most kBurstMax.
  OutFrame& add() { return *new (&frames_[count_++]) OutFrame; }
  OutFrame& front() { return frames_.front(); }
  std::span<const OutFrame> frames() const { return std::span(frames_).first(count_); }

 private:
  static_assert(std::is_trivially_destructible_v<OutFrame>);

  std::array<OutFrame, kBurstMax> frames_;
  std::size_t count_ = 0;
};

/// Bytes that arrived; frames describe their own length, several may lie back to back.
struct InFrame {
  Bytes bytes;
  Path from;
  /// When they reached this node, where they then waited to be read; kNever: the link cannot say.
  Time arrived = kNever;
  /// Of datagrams that the kernel has joined: the bytes of each, except that the last one may be shorter. 0: it is one datagram,
  /// or the link cannot say.
  std::size_t segment = 0;
};

/// An ICMP error about a frame sent earlier. Any host can forge one: what it quotes tells whether it has seen the frame.
struct PathError {
  static constexpr std::size_t kQuotedMax =
      64;  ///< the header of a frame, and in a request for an association its sender's salt

  SocketAddress peer;
  Status status = Status::ok;    ///< refused (port unreachable) or unreachable (host, network)
  std::uint8_t link = 0;         ///< which of several links the frame had left by
  bool vouched = false;          ///< a link has recognized the frame as its own: the user need not
  std::uint8_t quoted_size = 0;  ///< routers may quote nothing that lies behind the UDP header
  std::array<std::byte, kQuotedMax> quoted{};

  ConstBytes quote() const { return {quoted.data(), quoted_size}; }
  /// The beginning of the frame.
  void set_quote(ConstBytes frame) {
    quoted_size = static_cast<std::uint8_t>(std::min(frame.size(), kQuotedMax));
    std::copy_n(frame.begin(), quoted_size, quoted.begin());
  }
};

class Link {
 public:
  virtual ~Link() = default;
  virtual const char* name() const = 0;
  /// Largest frame (its FrameHeader included) that this link sends or receives, bytes.
  virtual std::size_t frame_max() const = 0;
  /// True if frames of at most kEthertypeFrameMax bytes that go one at a time can travel under an EtherType
  /// of their own, which costs the receiving host less than IP. Not every network forwards it, and not every
  /// peer receives it: Path::ethertype says whether a frame takes it or came by it, and a path takes it only
  /// once it has been validated. Other frames, and other links, go by IP whatever the path says. Frames of
  /// both paths may overtake each other.
  virtual bool has_ethertype_path() const { return false; }
  /// Sends frames in order and returns how many were taken; for the rest there are no buffers now. Pieces are
  /// the caller's again on return. A taken frame may still be lost. Runs of frames with one path and one size
  /// (the last may be shorter) are cheapest: a link may hand them on as one.
  virtual std::size_t send_burst(std::span<const OutFrame> frames) = 0;
  /// Bytes at the end of each frame that seal it; 0: frames are not sealed, their checksum vouches for them.
  /// frame_max() is without them, what is received has them still.
  virtual std::size_t seal_overhead() const { return 0; }
  wire::Integrity integrity() const {
    return seal_overhead() != 0 ? wire::Integrity::seal : wire::Integrity::checksum;
  }
  /// Fills at most `frames.size()` entries and returns how many. Their bytes stay valid until the next call,
  /// and are the caller's to change.
  virtual std::size_t receive_burst(std::span<InFrame> frames) = 0;
  /// Writes the ICMP errors since the last call, at most `errors.size()`. Costs a system call, so it is
  /// called when something seems wrong, not per turn.
  virtual std::size_t read_path_errors(std::span<PathError> errors) = 0;
  /// Readable when frames or errors wait; the same for the life of the link. Empty: one cannot sleep on this
  /// link.
  virtual std::vector<int> descriptors() const { return {}; }
  /// The caller is about to sleep: the next receive_burst() looks at every source, whatever that costs.
  virtual void before_sleep() {}
  /// From now on the kernel drops frames as `thinning` says, if the link can have it do so. Those that lie in one arrival are
  /// dropped or let through together, as the first of them says. Costs some system calls.
  virtual void thin(const Thinning&) {}
};

}  // namespace cluster::link
