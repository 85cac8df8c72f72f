#include "seal/direction_keys.h"

#include <cstring>

#include "wire/endian.h"

namespace cluster::seal {

crypto::Aead* DirectionKeys::get(const JobKey& job, std::uint64_t number) {
  NumberedKey& key = keys_[number % keys_.size()];
  if (key.number == number) return key.aead.get();
  Context context = context_;
  const wire::Le64 bytes = number;
  std::memcpy(context.data() + context.size() - sizeof bytes, &bytes, sizeof bytes);
  key.aead = job.make_aead("frames", context, cipher_, use_);
  key.number = key.aead != nullptr ? number : kNone;
  return key.aead.get();
}

}  // namespace cluster::seal
