// AES-128-GCM by Intel's Multi-Buffer Crypto for IPsec, where it is installed: a frame costs a third to a fifth of what it
// costs with libcrypto, because a call of it has no state to look up, and because it uses the wide AES instructions of newer
// processors. The frames are the same. All other primitives, and the comparison of tags, are those of another library.
#pragma once

#include <memory>

#include "crypto/cryptography.h"

namespace cluster::os {

/// `other`, with AES-128-GCM by this library; `other` itself (which may be null) where there is none that computes the same.
std::shared_ptr<const crypto::Cryptography> prefer_ipsec_mb(
    std::shared_ptr<const crypto::Cryptography> other);

}  // namespace cluster::os
