/**
 * Every bound the server enforces, each with its reason. Units go last in a name.
 * What an operator may tune is in `config.ts`; what is here is part of the product.
 */
