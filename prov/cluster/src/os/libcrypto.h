// Implements the primitives of crypto/ with OpenSSL's libcrypto, and AES-128-GCM with Intel's Multi-Buffer
// Crypto for IPsec where that is installed. The plugin loads these libraries when the first key is used.
// Therefore the plugin depends on no version of them, and also works without them. It never unloads them,
// because objects of the libraries may exist until the process ends.
#pragma once

#include <memory>
#include <string>

#include "crypto/cryptography.h"

namespace cluster::os {

/// Loads libcrypto, version 3 or 1.1. Returns null if that fails, or if the library computes wrong test
/// results, and writes the cause to `reason`.
std::shared_ptr<const crypto::Cryptography> load_libcrypto(std::string& reason);

/// Returns a Cryptography that uses libIPSec_MB for AES-128-GCM, and `other` for everything else. Returns
/// `other` itself if it is null, or if libIPSec_MB is missing or computes different results. libIPSec_MB
/// seals a frame three to five times as fast as libcrypto. It uses the wide AES instructions of newer
/// processors, and one call does all the work. Both libraries produce the same bytes.
std::shared_ptr<const crypto::Cryptography> prefer_ipsec_mb(
    std::shared_ptr<const crypto::Cryptography> other);

}  // namespace cluster::os
