// Reads parquet files with Arrow. Arrow is optional: it comes with the pyarrow wheel and is used through a
// separate module, lattice_parquet.so, which is loaded when the first parquet file is opened.
#ifndef LATTICE_DATA_PARQUET_H_
#define LATTICE_DATA_PARQUET_H_

#include <filesystem>
#include <memory>
#include <string>

#include "data/text_source.h"

namespace lattice::data {

// Opens a text column, each row a document. Throws Error when this build has no Arrow (saying how to get it),
// when the file is not parquet, and when it has no such column (listing those it has).
std::unique_ptr<TextSource> OpenParquet(const std::filesystem::path& path, const std::string& column);

// The function that the module exports under kParquetSymbol.
using OpenParquetFunction = TextSource* (*)(const char* path, const char* column);
inline constexpr const char* kParquetSymbol = "lattice_open_parquet";

}  // namespace lattice::data

#endif  // LATTICE_DATA_PARQUET_H_
