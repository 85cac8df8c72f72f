#include "seal/sealed_burst.h"

#include <algorithm>
#include <cstring>

namespace cluster::seal {

SealedBurst::SealedBurst(Mode mode)
    : encrypts_(mode == Mode::encrypt), staging_(std::make_unique_for_overwrite<std::byte[]>(kStagingBytes)) {}

bool SealedBurst::fits(const link::OutFrame& frame) const {
  if (count_ == frames_.size()) return false;
  return staged_ + frame.size + kOverheadMax <= kStagingBytes;
}

/// Frames of one path keep one: a link may hand them on together.
const link::Path* SealedBurst::plain(const link::Path* path) {
  if (path->to.realm() == 0) return path;
  if (path == last_path_) return frames_[count_ - 1].path;
  last_path_ = path;
  return &(paths_[count_] = link::without_realm(*path));
}

bool SealedBurst::add(const link::OutFrame& frame, Association& association, ConstBytes block) {
  wire::FrameHeader header;
  wire::SealTrailer trailer;
  std::memcpy(&header, frame.pieces[0].data(), sizeof header);
  const std::size_t size = frame.size + block.size() + sizeof trailer;
  header.length = static_cast<std::uint16_t>(size);
  std::array<ConstBytes, link::kPiecesMax> pieces = frame.pieces;
  pieces[0] = pieces[0].subspan(sizeof header);
  const std::span<const ConstBytes> payload(pieces.data(), frame.count);
  std::byte* const staged = staging_.get() + staged_;
  std::byte* const body = std::copy(block.begin(), block.end(), staged + sizeof header);
  if (encrypts_) {
    if (!association.seal(header, payload, body, trailer, block)) return false;
  } else {
    std::byte* end = body;
    for (const ConstBytes piece : payload) end = std::copy(piece.begin(), piece.end(), end);
    const ConstBytes copied(body, static_cast<std::size_t>(end - body));
    if (!association.seal(header, {&copied, 1}, nullptr, trailer, block)) return false;
  }
  std::memcpy(staged, &header, sizeof header);
  std::memcpy(staged + size - sizeof trailer, &trailer, sizeof trailer);
  const link::Path* const path = plain(frame.path);
  link::OutFrame& sealed = frames_[count_++];
  sealed.path = path;
  sealed.count = sealed.size = 0;
  sealed.add({staged, size});
  staged_ += sealed.size;
  return true;
}

}  // namespace cluster::seal
