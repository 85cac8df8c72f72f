// A link carries frames to other nodes and may lose, duplicate, reorder and damage them; reliability/ repairs
// that. Calls are per burst, never per frame, and a link does not look into frames. No component above links
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
#include "wire/frame.h"

namespace cluster::link {

/// How a link reaches a peer. The caller keeps the path, and learns a better one from authentic frames.
struct Path {
  SocketAddress to;
  std::array<std::byte, 6> mac{};
  bool mac_known = false;
  std::uint8_t link = 0;   ///< which of this side's links, where there are several (multipath/link_bundle.h)
  bool ethertype = false;  ///< send under the provider's own EtherType, if the link can
  /// Timeouts in a row since the peer was last heard, counted up to a limit. If there are many, its host may
  /// have another hardware address now.
  std::uint8_t doubts = 0;

  bool same_mac(const Path& other) const {
    return std::memcmp(mac.data(), other.mac.data(), sizeof mac) == 0;
  }
};

/// Returns the path for the answer to a frame that any host could have forged. The kernel's routes and
/// neighbour table then decide.
inline Path without_mac(const Path& path) { return {path.to, {}, false, path.link}; }

/// Returns the same path over IP.
inline Path ip_path(Path path) {
  path.ethertype = false;
  return path;
}

inline constexpr std::size_t kPiecesMax = 12;
inline constexpr std::size_t kEthertypeFrameMax = 1280;  ///< bytes; larger frames gain nothing from it
inline constexpr std::size_t kBurstMax = 44;             ///< frames of 1500 bytes: the largest super-frame

/// One frame to send: `count` pieces in a row, `size` bytes in all.
struct OutFrame {
  const Path* path = nullptr;
  std::size_t count = 0;
  std::size_t size = 0;
  union {  // only the pieces in use are ever written
    std::array<ConstBytes, kPiecesMax> pieces;
  };

  OutFrame() {}
  void add(ConstBytes piece) {
    if (piece.empty()) return;
    pieces[count++] = piece;
    size += piece.size();
  }
};

/// The frames of one send_burst(), built in place. It has some 9 KB: too much for a stack, and too much to
/// clear each time.
class OutBurst {
 public:
  void clear() { count_ = 0; }
  /// Appends an empty frame and returns it; at most kBurstMax in all.
  OutFrame& add() { return *new (&frames_[count_++]) OutFrame; }
  OutFrame& front() { return frames_.front(); }
  std::span<const OutFrame> frames() const { return std::span(frames_).first(count_); }

 private:
  static_assert(std::is_trivially_destructible_v<OutFrame>);

  std::array<OutFrame, kBurstMax> frames_;
  std::size_t count_ = 0;
};

/// Bytes that arrived. Several frames may lie back to back; each states its own length.
struct InFrame {
  Bytes bytes;
  Path from;
  /// When the bytes reached this node, before they waited to be read; kNever if the link cannot say.
  Time arrived = kNever;
  /// Size of each datagram that the kernel has joined; the last may be shorter. 0 if it is a single datagram,
  /// or unknown.
  std::size_t segment = 0;
};

/// An ICMP error about a frame sent earlier. Any host can forge one; the quoted bytes show whether its sender
/// has seen the frame.
struct PathError {
  static constexpr std::size_t kQuotedMax =
      64;  ///< enough for a frame header, and for the sender's salt in an association request

  SocketAddress peer;
  Status status = Status::ok;    ///< refused (port unreachable) or unreachable (host, network)
  std::uint8_t link = 0;         ///< by which of several links the frame left
  bool vouched = false;          ///< the link has recognized the quoted frame; the caller need not
  std::uint8_t quoted_size = 0;  ///< routers need not quote bytes behind the UDP header
  std::array<std::byte, kQuotedMax> quoted{};

  ConstBytes quote() const { return {quoted.data(), quoted_size}; }
  void set_quote(ConstBytes frame) {
    quoted_size = static_cast<std::uint8_t>(std::min(frame.size(), kQuotedMax));
    std::copy_n(frame.begin(), quoted_size, quoted.begin());
  }
};

/// What a link does during a flood of frames that belong to no session of a peer (docs/protocol.md 2.8). A
/// link cannot look up sessions. It compares one byte of the frame with the mark: the lowest byte of the
/// session in the header. Frames with the mark pass. Other frames wait in a queue aside, which wakes no
/// process, because waking a process is what costs most. The endpoint reads this queue at fixed intervals;
/// the kernel drops frames while the queue is full. No answer that a stranger can provoke during a flood
/// depends on the mark. Otherwise the stranger could find the mark by trying all 255.
struct Thinning {
  std::uint8_t mark = 1;
  bool on = false;  ///< frames without the mark wait aside

  static constexpr Duration kAsideInterval = 5ms;  ///< between two reads of the queue aside
  static constexpr std::size_t kAsideFrames = 24;  ///< that one read takes
  /// One keep-alive in 2^kKeepAliveShift waits aside, which shows whether a flood of keep-alives goes on.
  static constexpr unsigned kKeepAliveShift = 2;

  bool operator==(const Thinning&) const = default;
};

class Link {
 public:
  virtual ~Link() = default;
  virtual const char* name() const = 0;
  /// Largest frame (its FrameHeader included) that this link sends or receives, bytes.
  virtual std::size_t frame_max() const = 0;
  /// Returns true if single frames of at most kEthertypeFrameMax bytes can travel under the provider's
  /// EtherType (Path::ethertype). This path costs the receiving host less than IP. Not every network forwards
  /// such frames, and not every peer receives them. Frames on the two paths may overtake each other.
  virtual bool has_ethertype_path() const { return false; }
  /// Sends frames in order and returns how many it took. If it took fewer, there are no buffers for the rest
  /// now. When it returns, the caller owns the pieces again. A taken frame may still be lost. A run of frames
  /// with one path and one size (the last may be shorter) is cheapest: a link may send it as one super-frame.
  virtual std::size_t send_burst(std::span<const OutFrame> frames) = 0;
  /// Returns the size of the seal at the end of each received frame, which frame_max() does not include.
  /// Returns 0 if the checksum protects frames.
  virtual std::size_t seal_overhead() const { return 0; }
  wire::Integrity integrity() const {
    return seal_overhead() != 0 ? wire::Integrity::seal : wire::Integrity::checksum;
  }
  /// Receives frames, and returns how many entries it filled. Their bytes stay valid, and may be changed,
  /// until the next call.
  virtual std::size_t receive_burst(std::span<InFrame> frames) = 0;
  /// Writes the ICMP errors since the last call, and returns their number. It takes a system call, so call it
  /// only when something seems wrong.
  virtual std::size_t read_path_errors(std::span<PathError> errors) = 0;
  /// Returns descriptors that are readable when frames or errors wait. They stay the same for the life of the
  /// link. If there are none, nobody can sleep on this link.
  virtual std::vector<int> descriptors() const { return {}; }
  /// Tells the link that the caller is about to sleep. The next receive_burst() then looks at every source,
  /// whatever that costs.
  virtual void before_sleep() {}
  /// Makes the kernel put frames aside as the Thinning says, if the kernel can. Frames of one arrival stay
  /// together. Costs some system calls.
  virtual void thin(const Thinning&) {}
};

/// Sends one contiguous frame. Returns false if the link does not take it.
inline bool send_frame(Link& link, ConstBytes bytes, const Path& to) {
  OutFrame frame;
  frame.path = &to;
  frame.add(bytes);
  return link.send_burst({&frame, 1}) != 0;
}

/// Walks over the frames of an arrival. The kernel joins datagrams of one source address and one length,
/// whether the peer at that address or a forger has sent them. So a forged frame may lie before, between or
/// behind genuine ones. The kernel says where each datagram ends (InFrame::segment). The length that a frame
/// states does not move these borders:
///
/// - no frame reaches beyond its datagram;
/// - a refused frame discards the rest of its own datagram, and of no other.
///
/// If the link does not know the borders, the whole arrival counts as one datagram.
class ArrivalWalk {
 public:
  ArrivalWalk() = default;
  explicit ArrivalWalk(const InFrame& arrival)
      : rest_(arrival.bytes),
        joined_(arrival.segment != 0),
        segment_(arrival.segment != 0 ? arrival.segment : arrival.bytes.size()),
        left_(std::min(segment_, rest_.size())) {}

  bool done() const { return rest_.empty(); }
  /// The rest of the current datagram, where the next frame lies.
  Bytes datagram() const { return rest_.first(left_); }
  /// The bytes behind the next frame, which has this length: at most as many as another such frame.
  ConstBytes behind(std::size_t length) const {
    return rest_.subspan(length).first(std::min(length, rest_.size() - length));
  }
  /// The bytes where a run of frames of this length may lie: all that is left if each datagram is one such
  /// frame, otherwise the rest of the current datagram.
  Bytes run(std::size_t length) const { return length == segment_ ? rest_ : datagram(); }

  /// Moves past `count` frames of this length, which lie in run(length).
  void pass(std::size_t count, std::size_t length) {
    const std::size_t bytes = count * length;
    rest_ = rest_.subspan(bytes);
    left_ = bytes < left_ ? left_ - bytes : std::min(segment_, rest_.size());
  }
  void pass_datagram() { pass(1, left_); }
  /// Moves past a refused frame: to the next datagram or, if the borders are unknown, by `length`, which the
  /// frame states.
  void pass_refused(std::size_t length) { pass(1, joined_ ? left_ : length); }

 private:
  Bytes rest_;
  bool joined_ = false;      ///< the borders of the datagrams are known
  std::size_t segment_ = 0;  ///< bytes of a datagram; of the whole arrival if the borders are unknown
  std::size_t left_ = 0;     ///< bytes of the current datagram
};

}  // namespace cluster::link
