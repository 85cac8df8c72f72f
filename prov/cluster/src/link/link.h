// A link carries frames to other nodes. It may lose, duplicate, reorder and damage frames. Flows
// (reliability/) detect this, and retransmit what is missing. One call handles a burst of one or more frames.
// A link does not interpret what frames contain, with two exceptions: the seal (seal/sealed_link.h), and the
// fields of the header by which the filters of the kernel sort frames (os/port_filter.h). No component above
// the links knows about IP or Ethernet headers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
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

/// How a link reaches a peer. The caller stores the path, and replaces it when authentic frames show a better
/// one.
struct Path {
  SocketAddress to;
  std::array<std::byte, 6> mac{};
  bool mac_known = false;
  std::uint8_t link = 0;   ///< number of this side's link, if there are several (multipath/link_bundle.h)
  bool ethertype = false;  ///< send under the provider's own EtherType, if the link can
  /// The number of timeouts since the last frame from the peer, up to a limit. After many timeouts, the
  /// peer's host may have another hardware address.
  std::uint8_t doubts = 0;
  /// The kernel's routes and neighbour table choose the hardware address, whatever arriving frames show.
  bool by_routes = false;
  /// Of an arrived frame: a router has replaced the source address. The link has put an address that the peer
  /// lists in its place. Nothing but frames of this link reaches the peer there.
  bool translated = false;

  bool same_mac(const Path& other) const {
    using Words = std::array<std::uint16_t, 3>;
    const auto a = std::bit_cast<Words>(mac), b = std::bit_cast<Words>(other.mac);
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])) == 0;
  }
};

/// Returns the path for the answer to a frame that any host could have forged. On this path, the kernel's
/// routes and neighbour table choose the hardware address.
inline Path without_mac(const Path& path) { return {path.to, {}, false, path.link}; }

/// Returns the same path over IP.
inline Path ip_path(Path path) {
  path.ethertype = false;
  return path;
}

inline constexpr std::size_t kPiecesMax = 12;
/// The largest frame on the EtherType path, in bytes: the longest frame over IPv4 on an Ethernet with an MTU
/// of 1500. Each slot of a ring for these frames has space for such a frame and its headers.
inline constexpr std::size_t kEthertypeFrameMax = 1472;
/// The same for a peer without wire::feature::kEthertypeWhole, whose slots are smaller.
inline constexpr std::size_t kEthertypeFrameOld = 1280;
/// The largest number of 1500-byte frames that the kernel accepts as one super-frame (segmentation offload).
inline constexpr std::size_t kBurstMax = 44;

/// A frame to send. It consists of `count` pieces with `size` bytes in all.
struct OutFrame {
  const Path* path = nullptr;
  std::size_t count = 0;
  std::size_t size = 0;
  union {  // only pieces in use are written
    std::array<ConstBytes, kPiecesMax> pieces;
  };

  OutFrame() {}
  void add(ConstBytes piece) {
    if (piece.empty()) return;
    pieces[count++] = piece;
    size += piece.size();
  }
};

/// The frames for one send_burst(), built in place. The object occupies about 9 KB, which is too much for a
/// stack, and too much to clear each time.
class OutBurst {
 public:
  void clear() { count_ = 0; }
  /// Appends an empty frame and returns it. The burst must have fewer than kBurstMax frames before the call.
  OutFrame& add() { return *new (&frames_[count_++]) OutFrame; }
  OutFrame& front() { return frames_.front(); }
  std::span<const OutFrame> frames() const { return std::span(frames_).first(count_); }

 private:
  static_assert(std::is_trivially_destructible_v<OutFrame>);

  std::array<OutFrame, kBurstMax> frames_;
  std::size_t count_ = 0;
};

/// Bytes that have arrived together. They may contain several frames back to back. Each frame states its own
/// length.
struct InFrame {
  Bytes bytes;
  Path from;
  /// When the bytes reached this node, which may be long before they are read. kNever if the link does not
  /// know the time.
  Time arrived = kNever;
  /// The size of each datagram that the kernel has joined into this arrival; the last may be shorter. The
  /// value is 0 if there is only one datagram, or if the size is unknown.
  std::size_t segment = 0;
};

/// An error about a frame that this host has sent. It is an ICMP error, or an error that an RDMA device
/// reports. Any host can forge an ICMP error. The quoted bytes show whether the sender of the error has seen
/// the frame.
struct PathError {
  static constexpr std::size_t kQuotedMax =
      64;  ///< enough for a frame header, and for the sender's salt in an association request

  SocketAddress peer;
  Status status = Status::ok;    ///< refused (port unreachable), unreachable (host, network) or prohibited
  std::uint8_t link = 0;         ///< the number of the link that sent the frame
  bool vouched = false;          ///< the link has already verified the quoted frame
  std::uint8_t quoted_size = 0;  ///< may be 0: routers need not quote bytes after the UDP header
  std::array<std::byte, kQuotedMax> quoted{};

  ConstBytes quote() const { return {quoted.data(), quoted_size}; }
  void set_quote(ConstBytes frame) {
    quoted_size = static_cast<std::uint8_t>(std::min(frame.size(), kQuotedMax));
    std::copy_n(frame.begin(), quoted_size, quoted.begin());
  }
};

/// What a link does during a flood of frames that do not belong to a session of a peer (docs/protocol.md
/// 2.8). The filters of a link cannot look up sessions. Instead they compare the lowest byte of the session
/// number in the frame's header with the *mark*. The endpoint draws the mark at random, and puts it into the
/// numbers of its sessions with peers in the address vector. Frames with the mark pass as usual. Frames of
/// the listed sessions, whose numbers lack the mark, pass too. The kernel puts all other frames into a second
/// queue (for keep-alives see kKeepAliveShift). An arrival in this queue wakes no process, because wake-ups
/// would cause much of the cost of a flood. The endpoint reads the queue at fixed intervals. While the queue
/// is full, the kernel drops frames. During a flood, no answer to an unknown source depends on the mark.
/// Otherwise such a source could find the mark by trying all 255 values.
struct Thinning {
  static constexpr std::size_t kSessionsMax = 64;

  std::uint8_t mark = 1;
  bool on = false;  ///< there is a flood: the kernel puts frames aside
  /// Sessions without the mark whose frames pass; 0 fills the unused places.
  std::array<std::uint32_t, kSessionsMax> sessions{};

  bool passes(std::uint32_t session) const {
    return static_cast<std::uint8_t>(session) == mark ||
           (session != 0 && std::find(sessions.begin(), sessions.end(), session) != sessions.end());
  }

  static constexpr Duration kAsideInterval = 5ms;  ///< time between two reads of the second queue
  static constexpr std::size_t kAsideFrames = 24;  ///< the largest number of frames in one such read
  /// For keep-alives the mark does not matter if a thread answers them. The kernel puts one of
  /// 2^kKeepAliveShift of them aside, and the thread gets the others. From the keep-alives put aside, the
  /// endpoint learns whether a flood of keep-alives continues.
  static constexpr unsigned kKeepAliveShift = 2;

  bool operator==(const Thinning&) const = default;
};

class Link {
 public:
  virtual ~Link() = default;
  virtual const char* name() const = 0;
  /// Returns the size in bytes of the largest frame that this link sends or receives, including the
  /// FrameHeader.
  virtual std::size_t frame_max() const = 0;
  /// Returns false if frame_max() limits only the paths over this link (multipath/address_pairing.h:
  /// Rail::frame_max). On these paths, the flow sends longer frames in parts.
  virtual bool limits_all_paths() const { return true; }
  /// Returns true if the link can send single frames of at most kEthertypeFrameMax bytes under the provider's
  /// EtherType (Path::ethertype). This path costs the receiving host less than IP. Not every network forwards
  /// frames of this EtherType, and not every peer receives them. Frames on the two paths may overtake each
  /// other.
  virtual bool has_ethertype_path() const { return false; }
  /// Returns false if no interface of the link has a signal, for example because a cable is unplugged or a
  /// switch is off. The answer is as old as the last receive_burst().
  virtual bool has_carrier() const { return true; }
  /// Sends frames in order, and returns how many of them the link has taken. If the link has not taken all
  /// frames, it has no buffers for the rest now. After the call, the caller may change the pieces of all
  /// frames. A frame that was taken may still be lost. A run of frames with the same path and size is
  /// cheapest, because a link may send it as one super-frame. The last frame of a run may be shorter.
  virtual std::size_t send_burst(std::span<const OutFrame> frames) = 0;
  /// Returns the size of the seal at the end of each received frame, which frame_max() does not include.
  /// Returns 0 if frames have a checksum instead of a seal.
  virtual std::size_t seal_overhead() const { return 0; }
  /// Returns how many bytes the link adds to each frame on its way, beyond the limit that frame_max() gives
  /// to the frames of the caller: the seal, and the tag of a relay.
  virtual std::size_t overhead() const { return seal_overhead(); }
  wire::Integrity integrity() const {
    return seal_overhead() != 0 ? wire::Integrity::seal : wire::Integrity::checksum;
  }
  /// Receives frames, and returns the number of entries that it has filled. Until the next call, the bytes of
  /// the frames stay valid, and the caller may change them.
  virtual std::size_t receive_burst(std::span<InFrame> frames) = 0;
  /// Returns the relay through which frames to this address go now, or an empty address.
  virtual SocketAddress relay_to(const SocketAddress&) const { return {}; }
  /// Writes errors that arrived since the last call to `errors`, and returns their number. The function makes
  /// a system call, so callers use it only when something seems wrong.
  virtual std::size_t read_path_errors(std::span<PathError> errors) = 0;
  /// Returns descriptors that are readable when frames or errors wait. The numbers of the descriptors stay
  /// the same as long as the link exists. If there are no descriptors, a thread that waits for frames of this
  /// link cannot sleep.
  virtual std::vector<int> descriptors() const { return {}; }
  /// Tells the link that the caller is about to sleep. The next receive_burst() then checks every source of
  /// frames, even if this is expensive.
  virtual void before_sleep() {}
  using MoveHandler = std::function<void(std::uint8_t link, const SocketAddress& now)>;
  /// Makes receive_burst() call `handler` whenever the link has replaced its address. A link replaces its
  /// address when this host no longer has that address. `link`: the number of the link, if there are several.
  /// The handler must register descriptors() again wherever they are watched, because the same numbers may
  /// now refer to new sockets.
  virtual void on_move(const MoveHandler&) {}
  /// Tells the link that this queue pair belongs to the peer with this IP address. A link that seals frames
  /// has to know that, because its associations know only IP addresses of peers.
  virtual void note_queue_pair(const SocketAddress& queue_pair, const SocketAddress& peer) {
    static_cast<void>(queue_pair);
    static_cast<void>(peer);
  }
  /// Makes the kernel put frames aside as the argument says. Has no effect if the kernel cannot do that.
  /// Frames that the kernel has joined into one arrival pass together, or are put aside together. The call
  /// takes a few system calls.
  virtual void thin(const Thinning&) {}
};

/// Sends one contiguous frame. Returns false if the link does not take it.
inline bool send_frame(Link& link, ConstBytes bytes, const Path& to) {
  OutFrame frame;
  frame.path = &to;
  frame.add(bytes);
  return link.send_burst({&frame, 1}) != 0;
}

/// Walks over the frames of an arrival. The kernel joins datagrams that have the same source address and
/// length, even if some of them are forged. Therefore a forged frame may lie before, between or after genuine
/// frames. The kernel says where each datagram ends (InFrame::segment). The length that a frame states does
/// not change these borders:
///
/// - no frame reaches beyond its datagram;
/// - a refused frame discards the rest of its own datagram, but of no other.
///
/// If the link does not know the borders, the whole arrival counts as one datagram. In this case
/// pass_refused() moves past the refused frame only, because frames of other datagrams may follow.
class ArrivalWalk {
 public:
  ArrivalWalk() = default;
  explicit ArrivalWalk(const InFrame& arrival)
      : rest_(arrival.bytes),
        joined_(arrival.segment != 0),
        segment_(arrival.segment != 0 ? arrival.segment : arrival.bytes.size()),
        left_(std::min(segment_, rest_.size())) {}

  bool done() const { return rest_.empty(); }
  /// Returns the rest of the current datagram, which begins with the next frame.
  Bytes datagram() const { return rest_.first(left_); }
  /// `length`: the length of the next frame. Returns the bytes after this frame, but at most `length` bytes.
  ConstBytes behind(std::size_t length) const {
    return rest_.subspan(length).first(std::min(length, rest_.size() - length));
  }
  /// Returns the bytes in which to look for a run of frames of this length. If each datagram is one such
  /// frame, returns all remaining bytes. Otherwise returns the rest of the current datagram.
  Bytes run(std::size_t length) const { return length == segment_ ? rest_ : datagram(); }

  /// Moves past `count` frames of this length, which must lie in run(length).
  void pass(std::size_t count, std::size_t length) {
    const std::size_t bytes = count * length;
    rest_ = rest_.subspan(bytes);
    left_ = bytes < left_ ? left_ - bytes : std::min(segment_, rest_.size());
  }
  void pass_datagram() { pass(1, left_); }
  /// Moves past a refused frame. If the borders of datagrams are known, moves to the next datagram. Otherwise
  /// moves by `length`, the length that the frame states.
  void pass_refused(std::size_t length) { pass(1, joined_ ? left_ : length); }

 private:
  Bytes rest_;
  bool joined_ = false;      ///< the borders of the datagrams are known
  std::size_t segment_ = 0;  ///< size of a datagram, or of the arrival if the borders are unknown
  std::size_t left_ = 0;     ///< remaining bytes of the current datagram
};

}  // namespace cluster::link
