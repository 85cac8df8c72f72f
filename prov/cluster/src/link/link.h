// A link carries frames to other nodes and may lose, repeat, reorder and damage them: everything
// above lives with that. It is asked per burst, never per frame, and does not know what a frame
// means. Nothing above this room knows about IP or Ethernet headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/status.h"
#include "base/units.h"

namespace cluster::link {

/// How to reach a peer, as far as a link knows. Rooms above keep it and hand it back; they learn a
/// better one from frames that turned out to be genuine (the hardware address of the way back).
struct Path {
  SocketAddress to;
  std::array<std::byte, 6> mac{};
  bool mac_known = false;
  std::uint8_t link =
      0;  ///< by which of this side's links, where there are several (multipath/link_bundle.h)
  bool ethertype = false;  ///< by the link's shortcut, if it has one

  bool same_mac(const Path& other) const {
    return std::memcmp(mac.data(), other.mac.data(), sizeof mac) == 0;
  }
};

/// Only the name, for the kernel to find the way to: a frame that anybody could have written does not say
/// where answers go. By which of our links it came nobody can make up.
inline Path without_mac(const Path& path) { return {path.to, {}, false, path.link}; }

/// The same way without the shortcut.
inline Path ip_path(Path path) {
  path.ethertype = false;
  return path;
}

inline constexpr std::size_t kPiecesMax = 12;
inline constexpr std::size_t kEthertypeFrameMax =
    1280;                                     ///< bytes; large frames gain nothing worth a second way
inline constexpr std::size_t kBurstMax = 44;  ///< of 1500 bytes: the largest super-frame

/// One frame to send: `count` pieces one behind the other, `size` bytes in all.
struct OutFrame {
  const Path* path = nullptr;
  std::array<ConstBytes, kPiecesMax> pieces;
  std::size_t count = 0;
  std::size_t size = 0;

  void add(ConstBytes piece) {
    if (piece.empty()) return;
    pieces[count++] = piece;
    size += piece.size();
  }
};

/// Bytes that arrived; frames describe their own length, several may lie back to back.
struct InFrame {
  ConstBytes bytes;
  Path from;
  Time arrived =
      kNever;  ///< at this node, where it then lay until it was fetched; kNever: the link cannot say
};

/// Something the network said about frames sent earlier.
struct PathError {
  SocketAddress peer;
  Status status = Status::ok;  ///< refused (port unreachable) or unreachable (host, network)
  std::uint8_t link = 0;       ///< which of several links the frames had left by
};

class Link {
 public:
  virtual ~Link() = default;
  virtual const char* name() const = 0;
  /// Largest frame (its FrameHeader included) that this link sends or receives, bytes.
  virtual std::size_t frame_max() const = 0;
  /// A cheaper way for frames of at most kEthertypeFrameMax bytes that go one at a time, which not every
  /// network lets through and not every peer hears: paths say whether it is taken, and whether a frame came
  /// by it. Who has been shown that it leads to the peer may take it; other frames and other links take the
  /// long way whatever the path says. Frames of both ways may overtake each other.
  virtual bool has_ethertype_path() const { return false; }
  /// Sends frames in order and returns how many were taken; the rest found no room now. Pieces are
  /// the caller's again on return. A taken frame may still be lost. Runs of frames with one path
  /// and one size (the last may be shorter) are cheapest: a link may hand them on as one.
  virtual std::size_t send_burst(std::span<const OutFrame> frames) = 0;
  /// Fills at most `frames.size()` entries and returns how many. Their bytes stay valid until the
  /// next call.
  virtual std::size_t receive_burst(std::span<InFrame> frames) = 0;
  /// Writes what the network complained about since the last call, at most `path_errors.size()`
  /// entries. Costs a system call: asked when something seems wrong, not in the fast path.
  virtual std::size_t read_path_errors(std::span<PathError> path_errors) = 0;
  /// What becomes readable when frames or path_errors wait, for whoever wants to sleep until then; stays
  /// the same for the life of the link. Nothing: one cannot sleep on this link.
  virtual std::vector<int> descriptors() const { return {}; }
  /// Somebody is about to sleep: the next receive_burst looks everywhere, whatever that costs.
  virtual void before_sleep() {}
};

}  // namespace cluster::link
