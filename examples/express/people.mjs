/** Stands for your table of users. */
export const people = Array.from({ length: 1000 }, (_, at) => ({
  id: `acme-${at + 1}`,
  name: `Person ${at + 1}`,
  email: `person${at + 1}@acme.example`,
  password: `secret ${at + 1}`,
}))
