// A link carries frames to other nodes and may lose, duplicate, reorder and damage them; reliability/ repairs that. Calls are per burst,
// never per frame, and a link does not look into frames. No component above links knows about IP or Ethernet headers.
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

/// How to reach a peer, as far as a link knows: the caller keeps it, and learns a better one from authentic frames.
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

/// Where answers to a frame go that any host could have written: the kernel's routes and neighbour table decide.
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

/// The frames of one call of a link, built in place: some 9 KB, too much for a stack and too much to clear each time.
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
  /// When they reached this node, before they waited to be read; kNever: the link cannot say.
  Time arrived = kNever;
  /// Bytes of each datagram that the kernel has joined, but for the last; 0: it is a single one, or not known.
  std::size_t segment = 0;
};

/// An ICMP error about a frame sent earlier. Any host can forge one; what it quotes shows whether its sender has seen the frame.
struct PathError {
  static constexpr std::size_t kQuotedMax =
      64;  ///< the header of a frame, and in a request for an association its sender's salt

  SocketAddress peer;
  Status status = Status::ok;  ///< refused (port unreachable) or unreachable (host, network)
  std::uint8_t link = 0;       ///< which of several links the frame had left by
  bool vouched = false;        ///< the link has recognized the quoted frame as its own, so the user need not
  std::uint8_t quoted_size = 0;  ///< routers may quote nothing that lies behind the UDP header
  std::array<std::byte, kQuotedMax> quoted{};

  ConstBytes quote() const { return {quoted.data(), quoted_size}; }
  void set_quote(ConstBytes frame) {
    quoted_size = static_cast<std::uint8_t>(std::min(frame.size(), kQuotedMax));
    std::copy_n(frame.begin(), quoted_size, quoted.begin());
  }
};

/// What a link does during a flood of frames that belong to no session of a peer (docs/protocol.md 2.8). A link cannot look up sessions.
/// It looks at one byte, the mark: the lowest of the session in the header. Frames with the mark pass. What costs most in a frame is that it
/// wakes a process, so the others go to a place aside, which wakes nothing. The endpoint reads it by time, and the kernel drops what finds
/// it full. Nothing that any host can draw from the endpoint in a flood depends on the mark: otherwise it could find it by trying all 255.
struct Thinning {
  std::uint8_t mark = 1;
  bool on = false;  ///< frames without the mark wait aside

  static constexpr Duration kAsideInterval = 5ms;  ///< between two looks aside
  static constexpr std::size_t kAsideFrames = 24;  ///< of one look
  /// Of keep-alives one in 2^shift waits aside, which shows that a flood of them goes on.
  static constexpr unsigned kKeepAliveShift = 2;

  bool operator==(const Thinning&) const = default;
};

class Link {
 public:
  virtual ~Link() = default;
  virtual const char* name() const = 0;
  /// Largest frame (its FrameHeader included) that this link sends or receives, bytes.
  virtual std::size_t frame_max() const = 0;
  /// True if single frames of at most kEthertypeFrameMax bytes can travel under an EtherType of their own (Path::ethertype), which costs the
  /// receiving host less than IP. Not every network forwards it, and not every peer receives it. Frames of both paths may overtake each other.
  virtual bool has_ethertype_path() const { return false; }
  /// Sends frames in order and returns how many were taken; for the rest there are no buffers now. On return the pieces are the caller's
  /// again. A taken frame may still be lost. Runs of frames with one path and one size (the last may be shorter) are cheapest: a link
  /// may hand them on as one.
  virtual std::size_t send_burst(std::span<const OutFrame> frames) = 0;
  /// Bytes at the end of each received frame that seal it, beyond frame_max(); 0: the checksum protects frames.
  virtual std::size_t seal_overhead() const { return 0; }
  wire::Integrity integrity() const {
    return seal_overhead() != 0 ? wire::Integrity::seal : wire::Integrity::checksum;
  }
  /// Returns how many entries it filled. Their bytes stay valid, and may be changed, until the next call.
  virtual std::size_t receive_burst(std::span<InFrame> frames) = 0;
  /// Writes the ICMP errors since the last call: a system call, so only when something seems wrong.
  virtual std::size_t read_path_errors(std::span<PathError> errors) = 0;
  /// Readable when frames or errors wait; the same for the life of the link. Empty: nobody can sleep on this link.
  virtual std::vector<int> descriptors() const { return {}; }
  /// The caller is about to sleep. So the next receive_burst() looks at every source, whatever that costs.
  virtual void before_sleep() {}
  /// From now on the kernel puts frames aside so, if it can; those of one arrival together. Costs some system calls.
  virtual void thin(const Thinning&) {}
};

/// Sends one frame that lies in one piece. False: the link did not take it.
inline bool send_frame(Link& link, ConstBytes bytes, const Path& to) {
  OutFrame frame;
  frame.path = &to;
  frame.add(bytes);
  return link.send_burst({&frame, 1}) != 0;
}

/// Walks the frames of an arrival. The kernel joins datagrams of one source address and one length, whether the peer at that address
/// has sent them or a forger has. So a forged frame may lie in front of, between or behind genuine ones. The kernel says where one
/// datagram ends and the next begins (InFrame::segment), and what a frame says of its own length changes nothing about that:
///
/// - no frame reaches beyond its datagram;
/// - a refused frame takes the rest of its own datagram with it, and no other.
///
/// Where the link cannot say, the whole arrival counts as one datagram.
class ArrivalWalk {
 public:
  ArrivalWalk() = default;
  explicit ArrivalWalk(const InFrame& arrival)
      : rest_(arrival.bytes),
        joined_(arrival.segment != 0),
        segment_(arrival.segment != 0 ? arrival.segment : arrival.bytes.size()),
        left_(std::min(segment_, rest_.size())) {}

  bool done() const { return rest_.empty(); }
  /// What is left of this datagram: the next frame lies in it.
  Bytes datagram() const { return rest_.first(left_); }
  /// What lies behind a frame of this length, as far as another such frame reaches.
  ConstBytes behind(std::size_t length) const {
    return rest_.subspan(length).first(std::min(length, rest_.size() - length));
  }
  /// Where frames of this length may follow the next one: all that is left, if each datagram is one such frame.
  Bytes run(std::size_t length) const { return length == segment_ ? rest_ : datagram(); }

  /// Behind so many frames of this length, which lie in run(length).
  void pass(std::size_t count, std::size_t length) {
    const std::size_t bytes = count * length;
    rest_ = rest_.subspan(bytes);
    left_ = bytes < left_ ? left_ - bytes : std::min(segment_, rest_.size());
  }
  void pass_datagram() { pass(1, left_); }
  /// Behind a refused frame: to the next datagram or, where that is not known, by the length that the frame says.
  void pass_refused(std::size_t length) { pass(1, joined_ ? left_ : length); }

 private:
  Bytes rest_;
  bool joined_ = false;      ///< it is known where datagrams end
  std::size_t segment_ = 0;  ///< of the arrival; of all of it, if that is not known
  std::size_t left_ = 0;     ///< of this datagram
};

}  // namespace cluster::link
