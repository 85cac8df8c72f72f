#include "seal/sealed_burst.h"

#include <cstring>

namespace cluster::seal {

SealedBurst::SealedBurst(Mode mode) {
  if (mode == Mode::encrypt) staging_ = std::make_unique_for_overwrite<std::byte[]>(kStagingBytes);
}

bool SealedBurst::fits(const link::OutFrame& frame) const {
  if (count_ == frames_.size()) return false;
  return staging_ == nullptr || staged_ + frame.size + sizeof(wire::SealTrailer) <= kStagingBytes;
}

bool SealedBurst::add(const link::OutFrame& frame, Association& association) {
  wire::FrameHeader& header = headers_[count_];
  wire::SealTrailer& trailer = trailers_[count_];
  std::memcpy(&header, frame.pieces[0].data(), sizeof header);
  header.length = static_cast<std::uint16_t>(frame.size + sizeof trailer);
  std::array<ConstBytes, link::kPiecesMax> pieces = frame.pieces;
  pieces[0] = pieces[0].subspan(sizeof header);
  const std::span<const ConstBytes> payload(pieces.data(), frame.count);
  std::byte* const staged = staging_ != nullptr ? staging_.get() + staged_ : nullptr;
  std::byte* const out = staged != nullptr ? staged + sizeof header : nullptr;
  if (!association.seal(header, payload, out, trailer)) return false;
  link::OutFrame& sealed = frames_[count_++];
  sealed.path = frame.path;
  sealed.count = sealed.size = 0;
  if (staged != nullptr) {
    std::memcpy(staged, &header, sizeof header);
    std::memcpy(staged + frame.size, &trailer, sizeof trailer);
    sealed.add({staged, frame.size + sizeof trailer});
    staged_ += sealed.size;
    return true;
  }
  sealed.add(as_bytes(&header, sizeof header));
  for (const ConstBytes piece : payload) sealed.add(piece);
  sealed.add(as_bytes(&trailer, sizeof trailer));
  return true;
}

}  // namespace cluster::seal
